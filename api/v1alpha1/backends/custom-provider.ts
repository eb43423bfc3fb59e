import { CALL_IDS, HOSTED_PRESETS, OUTPUT_FORMATS, PRESET_NAMES, REASONING_FIELDS, REASONING_HISTORY, SERVER_FORMATS, TOKEN_FIELDS } from '../../llm-presets.ts'
import { boolean, choice, integer, list, map, object, ref, set, string, type Definitions, type Schema, type ValidationRule } from '../../schema.ts'

/** A field of a JSON body. */
const bodyField = string('Field.', { minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9_-]+$' })

export const presetName = choice(
  PRESET_NAMES,
  `A provider whose host, paths, APIs and peculiarities are known. Servers of your own: ${HOSTED_PRESETS.join(', ')}.`,
)

/** Fields of a provider for those that are data. */
export const dataProviderFields: Readonly<Record<string, Schema>> = {
  preset: presetName,
  model: ref('ShortString', 'Model to use instead of that of the request, of a preset. Not set: that of the request.'),
  custom: ref('CustomProvider'),
}

const hosted = HOSTED_PRESETS.map((name) => `'${name}'`).join(', ')
export const dataProviderRules: readonly ValidationRule[] = [
  {
    rule: `!has(self.preset) || has(self.host) || !(self.preset in [${hosted}])`,
    message: 'this preset is a server of your own; set host and port',
    fieldPath: '.preset',
  },
  { rule: '!has(self.model) || has(self.preset)', message: 'model is for presets; set the model of the provider', fieldPath: '.model' },
  {
    rule: '!has(self.custom) || (!has(self.host) && !has(self.path))',
    message: 'custom has its host and path in baseUrl; remove host, port and path',
    fieldPath: '.custom',
  },
]

/** `http://` or `https://`, a host, and optionally a port and a path: no user, query or fragment. */
const BASE_URL_PATTERN = '^https?://([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\\[[0-9A-Fa-f:.]+\\])(:[1-9][0-9]{0,4})?(/[^\\s?#]*)?$'
/** Headers that logs treat as credentials. */
const KEY_HEADER_PATTERN = '^([A-Za-z0-9]+-)*([Aa][Pp][Ii])?([Kk][Ee][Yy]|[Tt][Oo][Kk][Ee][Nn]|[Aa][Uu][Tt][Hh][Oo][Rr][Ii][Zz][Aa][Tt][Ii][Oo][Nn])$'

export const customProviderDefinitions: Definitions = {
  CustomProvider: object(
    'A provider that has no preset: an address, APIs and their peculiarities.',
    {
      baseUrl: string('URL in front of `/chat/completions`, `/responses`, `/messages` and `/embeddings`, such as `https://llm.example.com/v1`.', {
        minLength: 1,
        maxLength: 1024,
        pattern: BASE_URL_PATTERN,
      }),
      model: ref('ShortString', 'Model to use instead of that of the request. Not set: that of the request.'),
      formats: set(choice(SERVER_FORMATS, 'API.'), 'APIs of the server. Default: Completions and Embeddings.', 1, SERVER_FORMATS.length),
      auth: object('How the credential of `policies.auth` is sent. Default: `Authorization: Bearer`.', {
        header: string('Header; its name ends with key, token or authorization. Default: Authorization.', {
          minLength: 1,
          maxLength: 64,
          pattern: KEY_HEADER_PATTERN,
        }),
        scheme: string('Word before the credential. Default: Bearer in Authorization, none in other headers.', {
          minLength: 1,
          maxLength: 32,
          pattern: '^[A-Za-z0-9._~-]+$',
        }),
      }),
      rules: ref('ServerRules'),
    },
    ['baseUrl'],
  ),
  ServerRules: object('Peculiarities of a server with the Chat Completions API. A field that is not set: the rule of the family of the model.', {
    tokenLimit: choice(TOKEN_FIELDS, 'Field of the token limit.'),
    drop: set(bodyField, 'Fields of requests that the server rejects; they are left out.', 1, 32),
    rename: map(bodyField, 'Fields of requests that the server has under another name.', 1, 16),
    messageNames: boolean('Whether messages may have a field name.'),
    developerRole: boolean('Whether messages may have the role developer; if not, it becomes system.'),
    toolCallIds: choice(CALL_IDS, 'Ids of tool calls that the server accepts. NineAlphanumeric: nine letters and digits.'),
    reasoning: choice(
      REASONING_FIELDS,
      'How reasoning is asked for. Effort: reasoning_effort. Thinking: thinking.type, and reasoning_effort with efforts. EnableThinking: enable_thinking. None: not at all.',
    ),
    reasoningHistory: choice(REASONING_HISTORY, 'Reasoning of earlier responses. Text: sent as reasoning_content. None: left out.'),
    efforts: list(bodyField, 'Values of the effort, in rising order. Others become the nearest one.', 1, 8),
    outputFormat: choice(OUTPUT_FORMATS, 'Formats of responses. Object: JSON without a schema; schemas become it. None: response_format is left out.'),
    strictTools: boolean('Whether tools may have the field strict.'),
    imageUrls: boolean('Whether images may be URLs. If not, requests with them get 400.'),
    maxStops: integer('Most stop sequences; others are left out.', 0, 64),
    streamUsage: boolean('Whether streams report usage only if stream_options asks for it.'),
  }),
}
