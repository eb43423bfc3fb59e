/** Randomness of the program that evaluates expressions; this package has no source of its own. */
export interface Entropy {
  /** A number of at least 0 and less than 1. */
  readonly random: () => number
  /** A random UUID (RFC 9562, version 4). */
  readonly uuid: () => string
}

/** Which variables an expression may name, and what to say about those of other places. */
export interface Environment {
  /** Names may have dots (the longest one that fits wins). Undefined: whatever the context has. */
  readonly variables?: ReadonlySet<string>
  /** Variables that exist, but not here, with the reason for the message. */
  readonly elsewhere?: ReadonlyMap<string, string>
  /** Whether `flatten` means something: fields of logs and traces. */
  readonly hasFlatten?: boolean
  /** Without it `random()` and `uuid()` compile, and fail when evaluated. */
  readonly entropy?: Entropy
}

/**
 * Where an expression is used, hence when it is evaluated. `network`: a connection, before any request. `request`: policies before the
 * request is sent. `backend`: policies of a chosen backend. `llm`: transformations of LLM requests. `log`: access logs, traces,
 * metrics. `resource`: attributes of the process.
 */
export type Phase = 'network' | 'request' | 'backend' | 'llm' | 'response' | 'log' | 'resource'

const HTTP: readonly Phase[] = ['request', 'backend', 'llm', 'response', 'log']
const AFTER_CHOICE: readonly Phase[] = ['backend', 'llm', 'response', 'log']

/** traffic.md §9: each variable with the phases that have it, and when that is, in words. */
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
  // With the route, hence not yet in PreRouting, where it is absent.
  backend: [HTTP, 'in HTTP requests'],
  llm: [AFTER_CHOICE, 'once the backend is chosen'],
  llmRequest: [['llm'], 'in transformations of LLM requests'],
  mcp: [HTTP, 'in HTTP requests'],
  proxy: [HTTP, 'in HTTP requests'],
  env: [[...HTTP, 'resource'], 'in HTTP requests and resource attributes'],
}

function buildEnvironment(phase: Phase): Environment {
  const names = Object.entries(variables)
  return {
    variables: new Set(names.filter(([, [phases]]) => phases.includes(phase)).map(([name]) => name)),
    elsewhere: new Map(names.filter(([, [phases]]) => !phases.includes(phase)).map(([name, [, since]]) => [name, since])),
    hasFlatten: phase === 'log',
  }
}

export const environments: { readonly [P in Phase]: Environment } = {
  network: buildEnvironment('network'),
  request: buildEnvironment('request'),
  backend: buildEnvironment('backend'),
  llm: buildEnvironment('llm'),
  response: buildEnvironment('response'),
  log: buildEnvironment('log'),
  resource: buildEnvironment('resource'),
}

/** A variable of any place is one: for who does not know where an expression will be evaluated. */
export const anywhere: Environment = { variables: new Set(Object.keys(variables)), hasFlatten: true }
