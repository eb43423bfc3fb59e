import { exactlyOneOf, integer, keyedList, list, object, ref, string, type Definitions, type Schema, type ValidationRule } from '../../schema.ts'
import { exactlyOneOfNames, withRealNames } from '../real-names.ts'

const model = ref('ShortString', 'Model to use instead of that of the request. Not set: that of the request.')
const providers = ['providerA', 'providerB', 'providerC', 'providerD', 'providerE', 'providerF'] as const

const providerFields: Readonly<Record<string, Schema>> = {
  providerA: ref('ProviderA'),
  providerB: ref('ProviderB'),
  providerC: ref('ProviderC'),
  providerD: ref('ProviderD'),
  providerE: ref('ProviderE'),
  providerF: ref('ProviderF'),
  host: ref('Host', 'Host to send requests to, in plaintext unless `policies.tls` is set; needs port. Default: the host of the provider, over TLS.'),
  port: integer('Port to send requests to; needs host. Default: 443.', 1, 65535),
  path: ref('LongString', 'Path of all requests to the provider, instead of its own.'),
}
const providerRules: readonly ValidationRule[] = [
  exactlyOneOfNames('LLMProvider', ...providers),
  { rule: 'has(self.host) == has(self.port)', message: 'host and port must both be set together' },
]

export const aiBackendDefinitions: Definitions = {
  AIBackend: object(
    'An LLM backend: exactly one of provider, groups.',
    {
      provider: ref('LLMProvider', 'The only provider. A policy can target it by `sectionName: backend`.'),
      groups: list(
        ref('PriorityGroup'),
        'Groups of providers in priority order: requests go to the first group with a provider that is not evicted. Eviction needs `policies.health.eviction`.',
        1,
        8,
      ),
    },
    [],
    [
      exactlyOneOf('provider', 'groups'),
      {
        rule: '!has(self.groups) || self.groups.all(g, g.providers.all(p, self.groups.filter(h, h.providers.exists(q, q.name == p.name)).size() == 1))',
        message: 'provider names must be unique across groups',
        fieldPath: '.groups',
      },
    ],
  ),
  PriorityGroup: object(
    'Providers of equal priority; healthier and faster ones get more requests.',
    { providers: keyedList('name', ref('NamedLLMProvider'), 'Providers. Names are unique across all groups.', 1, 16) },
    ['providers'],
  ),
  LLMProvider: object(
    'One LLM provider: exactly one of openai, azureOpenAI, anthropic, gemini, vertexAI, bedrock, or of their neutral names providerA to providerF.',
    withRealNames('LLMProvider', providerFields),
    [],
    providerRules,
  ),
  NamedLLMProvider: object(
    'One LLM provider of a group: exactly one of openai, azureOpenAI, anthropic, gemini, vertexAI, bedrock, or of their neutral names providerA to providerF.',
    {
      name: ref('SectionName', 'Name, unique in the backend; a policy can target the provider by it (`sectionName`).'),
      ...withRealNames('NamedLLMProvider', providerFields),
      policies: ref('BackendWithAI', 'Policies for this provider; they take precedence over those of the backend.'),
    },
    ['name'],
    providerRules,
  ),
  ProviderA: object('OpenAI, `openai`.', { model }),
  ProviderB: object(
    'Azure OpenAI, `azureOpenAI`.',
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
  ProviderC: object('Anthropic, `anthropic`.', { model }),
  ProviderD: object('Google Gemini, `gemini`.', { model }),
  ProviderE: object(
    'Google Vertex AI, `vertexAI`.',
    {
      model,
      projectId: ref('TinyString', 'Google Cloud project.'),
      region: ref('TinyString', 'Region, for example `us-central1`; also `global`, `us` and `eu`.'),
    },
    ['projectId', 'region'],
  ),
  ProviderF: object('Amazon Bedrock, `bedrock`.', {
    region: string('AWS region.', { minLength: 1, maxLength: 63, pattern: '^[a-z0-9-]+$', default: 'us-east-1' }),
    model,
    guardrail: object(
      'Bedrock guardrail applied by the provider itself. Not set: none.',
      { identifier: ref('ShortString', 'Identifier of the guardrail.'), version: ref('ShortString', 'Version of the guardrail.') },
      ['identifier', 'version'],
    ),
  }),
}
