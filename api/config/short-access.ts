import { atLeastOneOf, exactlyOneOf, ref, type Definitions } from '../schema.ts'
import { integer, list, map, object, string } from './shared.ts'

const keyName = string('Name of a key in keys.', { minLength: 1, maxLength: 63 })
const window = {
  type: 'string',
  enum: ['Hour', 'Day', 'Week', 'Month'],
  default: 'Month',
  description: 'Calendar window, UTC; weeks begin on Monday.',
} as const

/** Short forms of who may use what: `keys`, `guardrails`, `https`, `rules` of MCP servers. */
export const shortAccessDefinitions: Definitions = {
  ShortKey: {
    ...object('An API key of a client, sent as `Authorization: Bearer`: exactly one of key, keyHash.', {
      key: string('The key, at least 16 characters. Usually a placeholder such as `${ALICE_KEY}`.', { minLength: 1, maxLength: 2048 }),
      keyHash: string('SHA-256 of the key, as `proxyctl keys create` prints it: `sha256:` and 64 hex digits.', { pattern: '^sha256:[0-9a-fA-F]{64}$' }),
      models: list(string('Name, with `*` for any text.', { minLength: 1, maxLength: 256 }), 'Models that the key may use. Default: all.', {
        minItems: 1,
        maxItems: 64,
      }),
      budget: ref('ShortKeyBudget'),
      expires: string('When the key ends (RFC 3339): `2027-01-31T00:00:00Z`.', { minLength: 1, maxLength: 64 }),
      metadata: map(string('Value.', { maxLength: 1024 }), 'Fields of `apiKey` in expressions, such as `team`, which the request log records.', {
        maxProperties: 32,
      }),
    }),
    'x-kubernetes-validations': [exactlyOneOf('key', 'keyHash')],
  },
  ShortKeyBudget: {
    ...object('What a key may spend in each window; then requests get 429.', {
      usd: { type: 'number', minimum: 0.000001, maximum: 1_000_000, description: 'US dollars. Models without a price are rejected.' },
      tokens: integer('LLM tokens, input and output.', { minimum: 1, maximum: 1_000_000_000_000 }),
      requests: integer('Requests.', { minimum: 1, maximum: 1_000_000_000 }),
      window,
    }),
    'x-kubernetes-validations': [atLeastOneOf('usd', 'tokens', 'requests')],
  },
  ShortGuardrails: {
    ...object('Guardrails of all models. Those of a model, `policies.ai.promptGuard`, replace them for it.', {
      mask: list(ref('ShortPattern'), 'Texts to replace in prompts and responses.', { minItems: 1 }),
      reject: list(ref('ShortPattern'), 'Texts for which a prompt is rejected with 403; in responses they are replaced.', { minItems: 1 }),
      request: list(ref('PromptguardRequest'), 'Further checks of prompts.', { minItems: 1, maxItems: 6 }),
      response: list(ref('PromptguardResponse'), 'Further checks of responses.', { minItems: 1, maxItems: 7 }),
    }),
    'x-kubernetes-validations': [atLeastOneOf('mask', 'reject', 'request', 'response')],
  },
  ShortPattern: {
    type: 'string',
    enum: ['Ssn', 'CreditCard', 'PhoneNumber', 'Email', 'CaSin'],
    description: 'Ssn: US social security number. CreditCard: card number with valid check digit. CaSin: Canadian social insurance number.',
  },
  ShortHttps: object(
    'TLS of the ports of models and MCP servers. Paths are relative to the file.',
    {
      cert: string('Certificate chain: a path, or PEM.', { minLength: 1 }),
      key: string('Private key: a path, or PEM.', { minLength: 1 }),
      clientCa: string('Trust anchors for client certificates: a path, or PEM. Setting it requires a client certificate.', { minLength: 1 }),
    },
    ['cert', 'key'],
  ),
  ShortMCPRule: object('Admits what all of its fields match.', {
    tools: list(
      string('Name of a tool as the server has it, with `*` for any text.', { minLength: 1, maxLength: 128 }),
      'Tools. Default: all, with prompts and resources.',
      {
        minItems: 1,
        maxItems: 256,
      },
    ),
    keys: list(keyName, 'Clients, by their names in keys. Default: every client.', { minItems: 1, maxItems: 256 }),
    when: ref('CELExpression', 'Condition on the request, such as `jwt.team == "sales"`. Errors: false.'),
  }),
}
