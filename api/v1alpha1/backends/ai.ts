import {
  boolean,
  choice,
  exactlyOneOf,
  integer,
  keyedList,
  list,
  map,
  object,
  ref,
  set,
  string,
  type Definitions,
  type Schema,
  type ValidationRule,
} from '../../schema.ts'
import { exactlyOneOfNames, withRealNames } from '../real-names.ts'
import { duration, usd } from '../shared.ts'
import { customProviderDefinitions, dataProviderFields, dataProviderRules } from './custom-provider.ts'

const model = ref('ShortString', 'Model to use instead of that of the request. Not set: that of the request.')
const providers = ['providerA', 'providerB', 'providerC', 'providerD', 'providerE', 'providerF'] as const

const providerFields: Readonly<Record<string, Schema>> = {
  providerA: ref('ProviderA'),
  providerB: ref('ProviderB'),
  providerC: ref('ProviderC'),
  providerD: ref('ProviderD'),
  providerE: ref('ProviderE'),
  providerF: ref('ProviderF'),
  ...dataProviderFields,
  host: ref('Host', 'Host to send requests to, in plaintext unless `policies.tls` is set; needs port. Default: the host of the provider, over TLS.'),
  port: integer('Port to send requests to; needs host. Default: 443.', 1, 65535),
  path: ref('LongString', 'Path of all requests to the provider, instead of its own.'),
}
const providerRules: readonly ValidationRule[] = [
  exactlyOneOfNames('LLMProvider', ...providers, 'preset', 'custom'),
  ...dataProviderRules,
  { rule: 'has(self.host) == has(self.port)', message: 'host and port must both be set together' },
]

/** Why a target of a model failed, as far as another target may do better (llm.md §15.4). */
const failureCauses = [
  'RateLimit',
  'Quota',
  'Overloaded',
  'Timeout',
  'ServerError',
  'FirstToken',
  'ContextLength',
  'ContentFilter',
  'Budget',
  'Auth',
  'ModelNotFound',
  'Unreachable',
] as const

/** A name, or a pattern with one `*` at one end. */
const MODEL_NAME_PATTERN = '^(\\*|\\*?[^*\\s]+|[^*\\s]+\\*)$'

/** Fields of a model besides its targets, which the short form of config files has too. */
export const modelFields = {
  by: choice(
    ['Weight', 'LeastLatency', 'LeastCost', 'LeastBusy'],
    'Choice among healthy targets that can serve the request. Weight: random, by weight. LeastLatency: the fastest by recent responses. LeastCost: the cheapest for the request. LeastBusy: the fewest requests in flight, relative to weight.',
    { default: 'Weight' },
  ),
  sticky: ref('CELExpression', 'Requests with the same value go to the same target, in all replicas; `by` is not used. Null, empty and errors: as not set.'),
  visibility: choice(['Public', 'Internal'], 'Internal: only targets of models name it; clients get 404, and lists omit it.', { default: 'Public' }),
} as const satisfies Readonly<Record<string, Schema>>
const when = ref(
  'CELExpression',
  'Condition, with `llmRequest`, `llm.promptTokens`, `llm.modalities`, `llm.prices` and the variables of the request. Not set: always true. Errors: false.',
)
const on = set(choice(failureCauses, 'Cause.'), 'Causes.', 1, failureCauses.length)
const weight = integer('Share of the requests, relative to the other targets; 0: none.', 0, 1_000_000, { default: 1 })

/** Names of the definitions of one form. */
interface Names {
  readonly rule: string
  readonly fallback: string
  readonly target: string
  readonly shadow: string
  readonly judge: string
  /** A target without weight. */
  readonly copy: string
}

/** `to`, `rules`, `fallback` and `shadow` with targets of one definition. */
export function modelTargets(names: Names): Record<string, Schema> {
  return {
    to: list(ref(names.target), 'Targets of all requests.', 1, 16),
    rules: list(ref(names.rule), 'Targets by condition: the first rule that matches. If none does, the model does not exist for the request: 404.', 1, 16),
    fallback: list(ref(names.fallback), 'Targets for requests whose target failed before the first content, in order.', 1, 8),
    shadow: ref(names.shadow),
  }
}

/** The definitions that `modelTargets` refers to. `fields` of a target are those besides its weight. */
export function modelTargetDefinitions(names: Names, description: string, fields: Readonly<Record<string, Schema>>, required: string): Definitions {
  const to = list(ref(names.target), 'Targets, of which one is chosen.', 1, 16)
  return {
    [names.rule]: object(
      'A rule of a model.',
      { when, to, rollout: ref('AIModelRollout') },
      ['to'],
      [
        {
          rule: '!has(self.rollout) || size(self.to) > 1',
          message: 'a rollout needs at least two targets in to, of which the last is the new one',
          fieldPath: '.rollout',
        },
      ],
    ),
    [names.fallback]: object('Targets after failures of some causes.', { on, to }, ['on', 'to']),
    [names.target]: object(description, { ...fields, weight }, [required]),
    [names.copy]: object(description, { ...fields }, [required]),
    [names.shadow]: object(
      'Copies of chats go to another model, whose responses are compared and discarded.',
      { to: ref(names.copy), ...shadowFields, judge: ref(names.judge) },
      ['to', 'percent', 'budget'],
    ),
    [names.judge]: object('A model that judges which response is better. The budget of the shadow pays it.', { to: ref(names.copy), rubric }, ['to', 'rubric']),
  }
}

const shadowFields: Readonly<Record<string, Schema>> = {
  percent: integer('Percentage of the chats that are copied. 0: none.', 0, 100),
  budget: usd('US dollars for the copies and the judge in each `window`, of each replica. Copies that may exceed it, and models without a price, are skipped.'),
  window: choice(['Hour', 'Day', 'Week', 'Month'], 'Calendar window of `budget`, in UTC.', { default: 'Month' }),
  timeout: {
    ...duration('Limit of a copy, and of each request to the judge. From 1s to 10m.', undefined, '60s'),
    'x-kubernetes-validations': [
      { rule: "duration(self) >= duration('1s') && duration(self) <= duration('10m')", message: 'must be from 1s to 10m', reason: 'FieldValueInvalid' },
    ],
  },
  concurrency: integer('Copies in flight, in each worker of a replica. 64 more wait, others are skipped.', 1, 64, { default: 4 }),
}
const rubric = string('What makes a response better, for the judge.', { minLength: 1, maxLength: 4096 })

const names: Names = {
  rule: 'AIModelRule',
  fallback: 'AIModelFallback',
  target: 'AIModelTarget',
  shadow: 'AIModelShadow',
  judge: 'AIModelJudge',
  copy: 'AIModelShadowTarget',
}
const modelDefinitions: Definitions = {
  AIModelRollout: object(
    'Moves the requests of a rule to its last target, step by step. The other targets of the rule, the baseline, get the rest by weight; `by` is not used. A change of the targets or of steps begins anew.',
    {
      steps: list(
        integer('Percentage of the requests that go to the last target.', 1, 100),
        'Rising percentages. After the last step all requests go to the last target.',
        1,
        16,
      ),
      every: duration('Least time of each step.', 1000, '30m'),
      minSamples: integer('Attempts with the last target, in each step, before the next step and before abortIf is evaluated.', 1, 1_000_000, { default: 50 }),
      abortIf: ref(
        'CELExpression',
        'Condition that ends the rollout: the last target gets no more requests. With `errorRate`, `p50`, `p95`, `firstTokenP50`, `firstTokenP95` (seconds), `cost` (mean, US dollars) and `samples` of the last target in the step, and the same of the baseline as `baseline.p95`. While it fails, for example without a price, the step stays.',
      ),
      action: choice(
        ['Run', 'Pause', 'Promote', 'Abort'],
        'Run: as above. Pause: the step stays; abortIf still holds. Promote: all requests go to the last target. Abort: none. Run after Promote or Abort begins anew.',
        { default: 'Run' },
      ),
    },
    ['steps'],
  ),
  AIModelRolloutState: object(
    'State of a rollout. Written by the gateway.',
    {
      model: string('Name of the model.', { minLength: 1, maxLength: 253 }),
      rule: integer('Index of its rule.', 0, 15),
      id: string('Digest of targets and steps.', { minLength: 1, maxLength: 64 }),
      phase: choice(
        ['Progressing', 'Paused', 'Promoted', 'Aborted'],
        'Progressing and Paused: at a step. Promoted: all requests go to the new target. Aborted: none.',
      ),
      step: integer('Index of the step.', 0, 15),
      weight: integer('Percentage of the requests that go to the new target.', 0, 100),
      since: string('Begin of the step, RFC 3339.', { format: 'date-time' }),
      message: string('What the rollout waits for, or why it ended.', { maxLength: 1024 }),
      byAction: boolean('The phase is that of the field action.'),
      baseline: map(string('Decimal number.', { maxLength: 32 }), 'Last known numbers of the baseline, as in abortIf.', 0, 16),
    },
    ['model', 'rule', 'id', 'phase', 'step', 'weight', 'since', 'message'],
  ),
  AIModel: object(
    'A model: exactly one of to, rules.',
    {
      name: string('Name that clients ask for, or a pattern with one `*` at one end. An exact name wins, then the longest pattern.', {
        minLength: 1,
        maxLength: 253,
        pattern: MODEL_NAME_PATTERN,
      }),
      ...modelTargets(names),
      ...modelFields,
    },
    ['name'],
    [exactlyOneOf('to', 'rules')],
  ),
  ...modelTargetDefinitions(
    names,
    'A backend that serves a model.',
    {
      backendRef: ref('AIModelBackendReference'),
      model: ref('ShortString', 'Model that the backend is asked for. Default: its own, if it has one, else the name that the client asked for.'),
    },
    'backendRef',
  ),
}

export const aiBackendDefinitions: Definitions = {
  AIBackend: object(
    'An LLM backend: exactly one of provider, groups, models.',
    {
      provider: ref('LLMProvider', 'The only provider. A policy can target it by `sectionName: backend`.'),
      groups: list(
        ref('PriorityGroup'),
        'Groups of providers in priority order: requests go to the first group with a provider that is not evicted. Eviction needs `policies.health.eviction`.',
        1,
        8,
      ),
      models: keyedList(
        'name',
        ref('AIModel'),
        'Models by the names that clients ask for, each with the backends that serve it. A policy can target a model by its name (`sectionName`). Of the policies of this backend, only `ai` applies to targets.',
        1,
        64,
      ),
    },
    [],
    [
      exactlyOneOf('provider', 'groups', 'models'),
      {
        rule: '!has(self.groups) || self.groups.all(g, g.providers.all(p, self.groups.filter(h, h.providers.exists(q, q.name == p.name)).size() == 1))',
        message: 'provider names must be unique across groups',
        fieldPath: '.groups',
      },
    ],
  ),
  ...modelDefinitions,
  PriorityGroup: object(
    'Providers of equal priority; healthier and faster ones get more requests.',
    { providers: keyedList('name', ref('NamedLLMProvider'), 'Providers. Names are unique across all groups.', 1, 16) },
    ['providers'],
  ),
  LLMProvider: object(
    'One LLM provider: exactly one of openai, azureOpenAI, anthropic, gemini, vertexAI, bedrock, their neutral names providerA to providerF, preset, custom.',
    withRealNames('LLMProvider', providerFields),
    [],
    providerRules,
  ),
  NamedLLMProvider: object(
    'One LLM provider of a group: exactly one of openai, azureOpenAI, anthropic, gemini, vertexAI, bedrock, their neutral names providerA to providerF, preset, custom.',
    {
      name: ref('SectionName', 'Name, unique in the backend; a policy can target the provider by it (`sectionName`).'),
      ...withRealNames('NamedLLMProvider', providerFields),
      policies: ref('BackendWithAI', 'Policies for this provider; they take precedence over those of the backend.'),
    },
    ['name'],
    providerRules,
  ),
  ...customProviderDefinitions,
  ProviderA: object('OpenAI.', {
    model,
    formats: set(choice(['Completions', 'Responses'], 'API.'), 'Chat APIs of the server. Default: both; Completions after a 404 of Responses.', 1, 2),
  }),
  ProviderB: object(
    'Azure OpenAI.',
    {
      endpoint: string('Host of the resource, for example `my-resource.openai.azure.com`; a scheme and a path are ignored.', {
        minLength: 1,
        maxLength: 256,
        pattern: '^(https?://)?[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[1-9][0-9]{0,4})?(/[^\\s?#]*)?$',
      }),
      deploymentName: ref('ShortString', 'Deployment to use. Required unless apiVersion is v1, where the request can name the model.'),
      apiVersion: { ...ref('TinyString', 'API version.'), default: 'v1' },
    },
    ['endpoint'],
    [
      {
        rule: "!has(self.apiVersion) || self.apiVersion == 'v1' || has(self.deploymentName)",
        message: 'deploymentName is required for this apiVersion',
        fieldPath: '.deploymentName',
        reason: 'FieldValueRequired',
      },
    ],
  ),
  ProviderC: object('Anthropic.', { model }),
  ProviderD: object('Google Gemini.', { model }),
  ProviderE: object(
    'Google Vertex AI.',
    {
      model,
      projectId: ref('TinyString', 'Google Cloud project.'),
      region: ref('TinyString', 'Region, for example `us-central1`; also `global`, `us` and `eu`.'),
    },
    ['projectId', 'region'],
  ),
  ProviderF: object('Amazon Bedrock.', {
    region: string('AWS region.', { minLength: 1, maxLength: 63, pattern: '^[a-z0-9-]+$', default: 'us-east-1' }),
    model,
    guardrail: object(
      'Bedrock guardrail applied by the provider itself. Not set: none.',
      { identifier: ref('ShortString', 'Identifier of the guardrail.'), version: ref('ShortString', 'Version of the guardrail.') },
      ['identifier', 'version'],
    ),
  }),
}
