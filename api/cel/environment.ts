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
 */
export type Phase = 'network' | 'request' | 'backend' | 'llm' | 'response' | 'log' | 'resource'

const HTTP: readonly Phase[] = ['request', 'backend', 'llm', 'response', 'log']
const AFTER_CHOICE: readonly Phase[] = ['backend', 'llm', 'response', 'log']

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
  env: [[...HTTP, 'resource'], 'in HTTP requests and resource attributes'],
}

/** The phases that have a variable; empty if there is none of that name. */
export function phasesOf(variable: string): readonly Phase[] {
  return Object.hasOwn(variables, variable) ? (variables[variable]?.[0] ?? []) : []
}

function buildEnvironment(phase: Phase): Environment {
  const names = Object.entries(variables)
  return {
    variables: new Set(names.filter(([, [phases]]) => phases.includes(phase)).map(([name]) => name)),
    elsewhere: new Map(names.filter(([, [phases]]) => !phases.includes(phase)).map(([name, [, since]]) => [name, since])),
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
}

/** All variables of all phases, for checks that do not know where an expression will be evaluated. */
export const anywhere: Environment = { variables: new Set(Object.keys(variables)), hasFlatten: true }
