/** Randomness of the program that evaluates expressions; this package has no source of its own. */
export interface Entropy {
  /** A number of at least 0 and less than 1. */
  readonly random: () => number
  /** A random UUID (RFC 9562, version 4). */
  readonly uuid: () => string
}

/** Variables that an expression may use, and explanations for those that exist elsewhere. */
export interface Environment {
  /** Names may contain dots; the longest match wins. Undefined: any variable of the context. */
  readonly variables?: ReadonlySet<string>
  /** All members of those variables that have no others. */
  readonly members?: ReadonlyMap<string, ReadonlySet<string>>
  /** Variables that exist in other phases only, each with a text for the message: when they are available. */
  readonly elsewhere?: ReadonlyMap<string, string>
  /** Whether `flatten()` is allowed: only in fields of logs and traces. */
  readonly hasFlatten?: boolean
  /** Without it `random()` and `uuid()` compile, and fail when evaluated. */
  readonly entropy?: Entropy
}

/**
 * When an expression is evaluated.
 *
 * - `network`: for a connection, before its first request
 * - `request`: in policies, before the request is sent
 * - `backend`: in policies of the selected backend
 * - `llm`: in transformations of LLM requests
 * - `response`: in policies, once there is a response
 * - `log`: in access logs, traces and metrics
 * - `resource`: in attributes of the process
 * - `rollout`: in conditions of the rollout of a model
 */
export type Phase = 'network' | 'request' | 'backend' | 'llm' | 'response' | 'log' | 'resource' | 'rollout'

const HTTP: readonly Phase[] = ['request', 'backend', 'llm', 'response', 'log']
const AFTER_CHOICE: readonly Phase[] = ['backend', 'llm', 'response', 'log']

/** Numbers of a target in a rollout (llm.md §15.7). */
const ROLLOUT_NUMBERS = ['samples', 'errorRate', 'p50', 'p95', 'firstTokenP50', 'firstTokenP95', 'cost'] as const

/** Each variable with the phases that have it and a description of these phases (traffic.md §9). */
const variables: Readonly<Record<string, readonly [phases: readonly Phase[], since: string]>> = {
  request: [HTTP, 'in HTTP requests'],
  response: [['response', 'log'], 'once there is a response'],
  source: [['network', ...HTTP], 'on connections'],
  destination: [HTTP, 'in HTTP requests'],
  jwt: [HTTP, 'in HTTP requests'],
  apiKey: [HTTP, 'in HTTP requests'],
  basicAuth: [HTTP, 'in HTTP requests'],
  extauthz: [HTTP, 'in HTTP requests'],
  extproc: [HTTP, 'in HTTP requests'],
  metadata: [HTTP, 'in HTTP requests'],
  mcpGuardrails: [HTTP, 'in HTTP requests'],
  // Known once the route is selected; absent in PreRouting.
  backend: [HTTP, 'in HTTP requests'],
  llm: [AFTER_CHOICE, 'once the backend is chosen'],
  llmRequest: [['llm'], 'in transformations of LLM requests'],
  mcp: [HTTP, 'in HTTP requests'],
  a2a: [HTTP, 'in HTTP requests'],
  proxy: [HTTP, 'in HTTP requests'],
  ...Object.fromEntries([...ROLLOUT_NUMBERS, 'baseline'].map((name) => [name, [['rollout'], 'in abortIf of a rollout'] as const])),
  env: [[...HTTP, 'resource'], 'in HTTP requests and resource attributes'],
}

const rolloutRows: readonly (readonly [name: (typeof ROLLOUT_NUMBERS)[number], type: string, description: string])[] = [
  ['samples', 'int', 'Attempts in the step of a rollout'],
  ['errorRate', 'double', 'Share of attempts that failed, from 0 to 1'],
  ['p50', 'double', 'Median of the time until the end of the response, in seconds'],
  ['p95', 'double', '95th percentile of the time until the end of the response, in seconds'],
  ['firstTokenP50', 'double', 'Median of the time until the first token of a stream, in seconds'],
  ['firstTokenP95', 'double', '95th percentile of the time until the first token of a stream, in seconds'],
  ['cost', 'double', 'Mean cost of a response in US dollars'],
]

/** Every variable and member of expressions, with type and description (traffic.md §9); `<key>` stands for any key. */
export const variableRows: readonly (readonly [name: string, type: string, description: string])[] = [
  ['request.method', 'string', 'Method, such as `GET`'],
  ['request.path', 'string', 'Path without query'],
  ['request.pathAndQuery', 'string', 'Path with query; has query(), addQuery(), setQuery()'],
  ['request.uri', 'string', 'Scheme, host, path and query; has query(), addQuery(), setQuery()'],
  ['request.host', 'string', 'Host with an explicit port'],
  ['request.scheme', 'string', '`http` or `https`'],
  ['request.version', 'string', '`HTTP/1.1` or `HTTP/2`'],
  ['request.headers', 'headers', 'A string per name, a list if the header is repeated; names are case-insensitive'],
  ['request.body', 'bytes', 'The body; reading it buffers the body up to maxBufferSize'],
  ['request.bodyPrefix', 'bytes', 'The first maxBufferSize bytes of the body'],
  ['request.startTime', 'timestamp', 'Receipt of the request head'],
  ['request.endTime', 'timestamp', 'End of the exchange; in logs only'],
  ['response.code', 'int', 'Status'],
  ['response.grpcStatus', 'int', 'gRPC status'],
  ['response.headers', 'headers', 'As request.headers'],
  ['response.body', 'bytes', 'The body; reading it buffers the body up to maxBufferSize'],
  ['response.bodyPrefix', 'bytes', 'The first maxBufferSize bytes of the body'],
  ['source.address', 'ip', 'Address of the client'],
  ['source.port', 'int', 'Port of the client'],
  ['source.rawAddress', 'ip', 'Address of the peer, before the PROXY protocol'],
  ['source.rawPort', 'int', 'Port of the peer, before the PROXY protocol'],
  ['source.identity', 'map', 'trustDomain, namespace and serviceAccount of a verified SPIFFE certificate'],
  ['source.spiffeId', 'string', 'SPIFFE ID of the verified client certificate'],
  ['source.subjectAltNames', 'list', 'Names in the verified client certificate'],
  ['source.issuer', 'string', 'Issuer of the verified client certificate'],
  ['source.subject', 'string', 'Subject of the verified client certificate'],
  ['source.subjectCn', 'string', 'Common name of the verified client certificate'],
  ['source.certificate', 'string', 'The verified client certificate as PEM'],
  ['source.unverifiedWorkload', 'map', 'name, namespace and serviceAccount of the pod with the address of the client'],
  ['source.connectHeaders', 'headers', 'Headers of the CONNECT request of the tunnel'],
  ['destination.address', 'ip', 'Address that the client connected to'],
  ['destination.port', 'int', 'Port that the client connected to'],
  ['destination.hostname', 'string', 'SNI'],
  ['jwt.<claim>', 'any', 'Claims of the verified token; jwt is null without one'],
  ['jwt.rawToken', 'secret', 'The verified token'],
  ['apiKey.key', 'secret', 'The verified API key'],
  ['apiKey.<key>', 'any', 'Metadata of the verified API key'],
  ['basicAuth.username', 'string', 'The verified user'],
  ['extauthz.<key>', 'any', 'Metadata that ext_authz returned'],
  ['extproc.<key>', 'any', 'Metadata that ext_proc returned'],
  ['metadata.<key>', 'any', 'Metadata that transformations set'],
  ['mcpGuardrails.<key>', 'any', 'Metadata that MCP guardrails returned'],
  ['backend.name', 'string', 'Name of the selected backend'],
  ['backend.type', 'string', '`ai`, `mcp`, `static`, `dynamic`, `service` or `unknown`'],
  ['backend.protocol', 'string', '`http`, `tcp`, `a2a`, `mcp` or `llm`'],
  ['llm.requestedModel', 'string', 'Model that the client asked for, of backends with `ai.models`'],
  ['llm.target', 'string', 'Target that responded, of backends with `ai.models`: `namespace/name` of the backend, and the model'],
  ['llm.skipped', 'list', 'Targets that were not used or failed, each with target and reason, of backends with `ai.models`'],
  ['llm.promptTokens', 'int', 'Estimated tokens of the prompt'],
  ['llm.modalities', 'list', 'What the prompt has: `text`, `image`, `audio`, `file`; in rules of `ai.models`'],
  ['llm.prices', 'map', 'Prices per million tokens of the targets by model, with input, output and others; in rules of `ai.models`'],
  ['llm.streaming', 'bool', 'Whether the client requested a stream'],
  ['llm.requestModel', 'string', 'Model of the request'],
  ['llm.responseModel', 'string', 'Model of the response'],
  ['llm.provider', 'string', 'Provider that served the request'],
  ['llm.inputTokens', 'int', 'Input tokens; after the response'],
  ['llm.outputTokens', 'int', 'Output tokens; after the response'],
  ['llm.totalTokens', 'int', 'All tokens; after the response'],
  ['llm.providerInputTokens', 'int', 'Input tokens as the provider reports them'],
  ['llm.providerTotalTokens', 'int', 'All tokens as the provider reports them'],
  ['llm.cachedInputTokens', 'int', 'Input tokens read from the cache of the provider'],
  ['llm.cacheCreationInputTokens', 'int', 'Input tokens written to the cache of the provider'],
  ['llm.reasoningTokens', 'int', 'Output tokens of reasoning'],
  ['llm.inputTextTokens', 'int', 'Input tokens of text'],
  ['llm.inputImageTokens', 'int', 'Input tokens of images'],
  ['llm.inputAudioTokens', 'int', 'Input tokens of audio'],
  ['llm.outputTextTokens', 'int', 'Output tokens of text'],
  ['llm.outputImageTokens', 'int', 'Output tokens of images'],
  ['llm.outputAudioTokens', 'int', 'Output tokens of audio'],
  ['llm.searches', 'int', 'Search units of a ranking'],
  ['llm.images', 'int', 'Images of the response'],
  ['llm.seconds', 'double', 'Seconds of audio'],
  ['llm.characters', 'int', 'Characters of a text that is spoken'],
  ['llm.countTokens', 'int', 'Result of a request that counts tokens'],
  ['llm.serviceTier', 'string', 'Service tier of the response'],
  ['llm.timePerOutputToken', 'duration', 'Time per output token of a stream'],
  ['llm.timeToFirstToken', 'duration', 'Time to the first token of a stream'],
  ['llm.prompt', 'list', 'Messages with role and content'],
  ['llm.completion', 'list', 'Texts of the response'],
  ['llm.toolCalls', 'list', 'Tool calls with id, name and arguments'],
  ['llm.params', 'map', 'temperature, top_p, seed, max_tokens and others'],
  ['llm.cost', 'double', 'Cost of the request, if the model has a price'],
  ['llm.costRates', 'map', 'Prices per million tokens that the cost was computed with: input, output, cacheRead and others'],
  ['llmRequest', 'any', 'The request as JSON; in transformations of LLM requests'],
  ['mcp.methodName', 'string', 'Method, such as `tools/call`'],
  ['mcp.sessionId', 'string', 'Session of the client'],
  ['mcp.tool', 'map', 'target and name; in logs also arguments, result and error'],
  ['mcp.prompt', 'map', 'target and name of the prompt'],
  ['mcp.resource', 'map', 'target and name of the resource'],
  ['mcp.task', 'map', 'target and name of the task'],
  ['a2a.method', 'string', 'Method of the request to an A2A agent, such as `SendMessage`; reading it in a policy buffers the body'],
  ['proxy.bind', 'string', 'Port with its Gateway'],
  ['proxy.gateway', 'map', 'namespace and name of the Gateway'],
  ['proxy.listener', 'map', 'name of the listener'],
  ['proxy.route', 'map', 'namespace, name, kind and rule of the route'],
  ['proxy.requestProcessingDuration', 'duration', 'Time in request policies; after the response'],
  ['proxy.upstreamDuration', 'duration', 'Time until the response head; after the response'],
  ['proxy.responseProcessingDuration', 'duration', 'Time in response policies; after the response'],
  ['env.podName', 'string', 'Name of the pod'],
  ['env.namespace', 'string', 'Namespace of the pod'],
  ['env.gateway', 'string', 'Name of the Gateway'],
  ...rolloutRows.map(([name, type, description]) => [name, type, `${description}, of the new target`] as const),
  ...rolloutRows.map(([name, type, description]) => [`baseline.${name}`, type, `${description}, of the other targets`] as const),
]

/**
 * Members of the variables whose members are fixed. Those of the others are data: claims, metadata, fields of a body.
 * Members of members are not listed: most are data, such as headers.
 */
const fixedMembers: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  [...Map.groupBy(variableRows, ([name]) => name.split('.')[0] ?? '')].flatMap(([root, rows]) => {
    const members = rows.map(([name]) => name.slice(root.length + 1))
    return members.some((member) => member === '' || member.startsWith('<')) ? [] : [[root, new Set(members)] as const]
  }),
)

/** The phases that have a variable; empty if there is none of that name. */
export function phasesOf(variable: string): readonly Phase[] {
  return Object.hasOwn(variables, variable) ? (variables[variable]?.[0] ?? []) : []
}

function buildEnvironment(phase: Phase): Environment {
  const names = Object.entries(variables)
  return {
    variables: new Set(names.filter(([, [phases]]) => phases.includes(phase)).map(([name]) => name)),
    elsewhere: new Map(names.filter(([, [phases]]) => !phases.includes(phase)).map(([name, [, since]]) => [name, since])),
    members: fixedMembers,
    hasFlatten: phase === 'log',
  }
}

/** The environment of each phase. */
export const environments: { readonly [P in Phase]: Environment } = {
  network: buildEnvironment('network'),
  request: buildEnvironment('request'),
  backend: buildEnvironment('backend'),
  llm: buildEnvironment('llm'),
  response: buildEnvironment('response'),
  log: buildEnvironment('log'),
  resource: buildEnvironment('resource'),
  rollout: buildEnvironment('rollout'),
}

/** All variables of all phases, for checks that do not know where an expression will be evaluated. */
export const anywhere: Environment = { variables: new Set(Object.keys(variables)), members: fixedMembers, hasFlatten: true }
