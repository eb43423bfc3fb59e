import { atMostOneOf, ref, type Definitions, type Schema } from '../schema.ts'
import { aiBackendDefinitions, modelFields, modelTargetDefinitions, modelTargets } from '../v1alpha1/backends/ai.ts'
import { presetName } from '../v1alpha1/backends/custom-provider.ts'
import { exactlyOneOfNames, withRealNames } from '../v1alpha1/real-names.ts'
import { shortAccessDefinitions } from './short-access.ts'
import { inheritEnv } from './mcp-program.ts'
import { LLM_PORT, MCP_PORT } from './short-form-ports.ts'
import { list, map, object, port, string } from './shared.ts'

/** Most models of a file: the limit of `modelAliases`, which lists them. */
const MAX_MODELS = 64

const apiKey = string('API key of the provider, sent in the way the provider requires. Usually a placeholder such as `${OPENAI_API_KEY}`.', {
  minLength: 1,
  maxLength: 2048,
})
const url = (description: string): Schema => string(description, { minLength: 1, maxLength: 1024, pattern: '^https?://' })
const otherUrl = url('Base URL to use instead of the host of the provider: `http://` or `https://`. Its path is put in front of the paths of the provider.')

/** A provider of the long form, with its credentials and address. */
function withCredentials(definition: string, more: Readonly<Record<string, Schema>>): Schema {
  const { description = '', properties = {}, required = [] } = aiBackendDefinitions[definition] ?? {}
  return object(description, { ...properties, apiKey, url: otherUrl, ...more }, required)
}

const addresses = list(
  string('IP address.'),
  'Addresses to listen on. Default: loopback, or all if policies or tls.clientCa demand that clients authenticate. An empty list: all.',
)
const listen = string('Address and port in one text, in place of addresses and port: `127.0.0.1:4000`, `[::1]:4000`, `0.0.0.0` or `*:4000`.', {
  minLength: 1,
  maxLength: 64,
})

const kinds = ['providerA', 'providerB', 'providerC', 'providerD', 'providerE', 'providerF'] as const
const providers = [...kinds, 'preset', 'custom'] as const
const targetNames = {
  rule: 'ShortModelRule',
  fallback: 'ShortModelFallback',
  target: 'ShortModelTarget',
  shadow: 'ShortModelShadow',
  judge: 'ShortModelJudge',
  copy: 'ShortModelCopy',
}
const accessKey = (description: string): Schema => string(description, { minLength: 1, maxLength: 2048 })

const pick = ({ properties = {} }: Schema = {}, ...names: string[]): Record<string, Schema> =>
  Object.fromEntries(Object.entries(properties).filter(([name]) => names.includes(name)))

const providerFields = (definition: string): Record<string, Schema> => ({
  ...withRealNames(definition, Object.fromEntries(kinds.map((name) => [name, ref(`ShortP${name.slice(1)}`)]))),
  preset: ref('ShortPreset'),
  custom: ref('ShortCustom'),
})
const targetDefinitions = modelTargetDefinitions(
  targetNames,
  'Another model of the file.',
  { model: string('Name of another model of the file.', { minLength: 1, maxLength: 256 }) },
  'model',
)
/** A target in place of a name has a provider of its own. */
const target = (definition: string): Record<string, Schema> => ({
  model: string('Name of another model of the file.', { minLength: 1, maxLength: 256 }),
  ...providerFields(definition),
  policies: ref('BackendWithAI', 'Policies of this provider, in addition to those of the model. Not with model.'),
})

/** Models by the name that clients use. */
export const shortModels = map(ref('ShortLLMModel'), 'Models by the name that clients use.', { minProperties: 1, maxProperties: MAX_MODELS })
/** Address of models and MCP servers. */
export const shortListen = string(
  'Address and port of models and MCP servers: `127.0.0.1:4000`, `[::1]:4000`, `localhost`, `0.0.0.0` or `*:4000`. With both, MCP servers are at the path `/mcp`. Default: a port for each, and addresses as `addresses` of a bind.',
  { minLength: 1, maxLength: 64 },
)

/** Short forms of the `-f` file. `dataplane/config/short/forms.ts` expands them into the long form. */
export const shortFormDefinitions: Definitions = {
  ShortLLM: object(
    'LLM models on one port. Clients choose a model by the field `model` of their requests.',
    {
      port: port(`TCP port. Default: ${LLM_PORT}.`),
      addresses,
      listen,
      tls: ref('FileTls'),
      models: shortModels,
      policies: ref('Traffic', 'Traffic policies of all models.'),
    },
    ['models'],
  ),
  ShortLLMModel: {
    ...object(
      'A model: exactly one of openai, azureOpenAI, anthropic, gemini, vertexAI, bedrock, of their neutral names providerA to providerF, preset, custom, providers, to, rules.',
      {
        ...modelTargets(targetNames),
        providers: list(ref(targetNames.target), 'Another name of to.', { minItems: 1, maxItems: 16 }),
        ...modelFields,
        ...providerFields('ShortLLMModel'),
        policies: ref('BackendWithAI', 'Policies of this model.'),
      },
    ),
    'x-kubernetes-validations': [exactlyOneOfNames('ShortLLMModel', ...providers, 'providers', 'to', 'rules')],
  },
  ...targetDefinitions,
  ShortModelTarget: {
    ...object('What serves a model: another model of the file, or a provider.', {
      ...target('ShortModelTarget'),
      ...pick(targetDefinitions['ShortModelTarget'], 'weight'),
    }),
    'x-kubernetes-validations': [exactlyOneOfNames('ShortModelTarget', 'model', ...providers), atMostOneOf('model', 'policies')],
  },
  ShortModelFallback: {
    ...object('What serves requests whose target failed: exactly one of to, model, a provider.', {
      ...target('ShortModelFallback'),
      ...pick(targetDefinitions['ShortModelFallback'], 'to', 'on'),
    }),
    'x-kubernetes-validations': [exactlyOneOfNames('ShortModelFallback', 'to', 'model', ...providers), atMostOneOf('model', 'to', 'policies')],
  },
  ShortProviderA: withCredentials('ProviderA', {
    url: url('Base URL of a server that implements the API of OpenAI, as its SDK takes it: `http://localhost:11434/v1`. Default: `https://api.openai.com/v1`.'),
  }),
  ShortProviderB: withCredentials('ProviderB', {}),
  ShortProviderC: withCredentials('ProviderC', {}),
  ShortProviderD: withCredentials('ProviderD', {}),
  ShortProviderE: withCredentials('ProviderE', {}),
  ShortProviderF: withCredentials('ProviderF', {
    accessKeyId: accessKey('AWS access key; needs secretAccessKey. Without it and apiKey, the default credential chain is used.'),
    secretAccessKey: accessKey('AWS secret key.'),
    sessionToken: accessKey('AWS session token.'),
  }),
  ShortPreset: {
    ...object(
      'A provider by its name.',
      {
        name: presetName,
        model: ref('ShortString', 'Model to use instead of that of the request. Not set: that of the request.'),
        apiKey,
        url: url('Base URL, as SDKs take it: `http://localhost:11434/v1`. Default: that of the provider, or the usual port of localhost.'),
      },
      ['name'],
    ),
  },
  ShortCustom: object('A provider that has no preset.', { ...aiBackendDefinitions['CustomProvider']?.properties, apiKey }, ['baseUrl']),
  ShortMCP: {
    ...object('MCP servers on one port, merged into one server: every field is a server by its name, except those listed here.', {
      port: port(`TCP port. Default: ${MCP_PORT}.`),
      addresses,
      listen,
      tls: ref('FileTls'),
      policies: ref('Traffic', 'Traffic policies of the port.'),
      prefixMode: {
        type: 'string',
        enum: ['Conditional', 'Always', 'Never'],
        description: 'Whether names of tools and prompts get the name of the server as prefix. Default: Conditional, with more than one server.',
      },
      failureMode: { type: 'string', enum: ['FailClosed', 'FailOpen'], description: 'Handling of a server that fails. Default: FailClosed.' },
      sessionRouting: { type: 'string', enum: ['Stateful', 'Stateless'], description: 'Whether clients have sessions. Default: Stateful.' },
      toolSearch: { type: 'string', enum: ['Disabled', 'Enabled'], description: 'Enabled: clients search for tools and see three. Default: Disabled.' },
      allowOrigins: {
        ...list(
          string('Origin: `*`, or `scheme://host[:port]`.', { minLength: 1, maxLength: 253 }),
          'Origins of pages that may send requests. Others get 403.',
        ),
        minItems: 1,
        maxItems: 64,
      },
      views: { ...list(ref('McpView'), 'Parts of the servers, by path or host.'), minItems: 1, maxItems: 32 },
      toolPins: ref('ResolvedMcpToolPins', 'Pins of tools: `pins: "${file:pins.json}"`.'),
      toolNames: {
        type: 'string',
        enum: ['Unchanged', 'Portable'],
        description: 'Portable: names of tools have at most 64 letters, digits, `_` and `-`. Default: Unchanged.',
      },
    }),
    additionalProperties: ref('ShortMCPServer'),
    minProperties: 1,
  },
  ShortMCPServer: object('An MCP server: exactly one of url, command. With openapi, an HTTP API at url.', {
    url: url('URL of the MCP endpoint, `http://` or `https://`. Without a path: `/mcp`, or `/sse` with protocol SSE. With openapi: URL of the API.'),
    openapi: string('OpenAPI document of an HTTP API, in JSON or YAML, whose operations become tools: a path relative to the config file.', {
      minLength: 1,
      maxLength: 4096,
    }),
    rules: {
      ...list(ref('ShortMCPRule'), 'Who may use which tools. Tools that no rule admits are unknown. Default: every client may use all.'),
      minItems: 1,
      maxItems: 64,
    },
    protocol: { type: 'string', enum: ['StreamableHTTP', 'SSE'], description: 'Transport. Default: StreamableHTTP.' },
    apiKey: string('Sent as `Authorization: Bearer`.', { minLength: 1, maxLength: 2048 }),
    tools: ref('McpTools'),
    policies: ref('BackendWithMCP', 'Policies of this server.'),
    command: {
      ...list(
        string('Program, then arguments.'),
        'A program that speaks MCP over stdio, in place of url. Each session has a process of its own, without a shell.',
      ),
      minItems: 1,
    },
    env: map(string('Value.'), 'Environment of command. There is no other, not even PATH, unless inheritEnv is set.'),
    inheritEnv,
  }),
  ...shortAccessDefinitions,
}
