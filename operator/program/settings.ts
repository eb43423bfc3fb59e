import { hostname } from 'node:os'
import { GATEWAY_CLASS, GROUP, SYSTEM_NAMESPACE, XDS_PORT } from '#api/names.ts'
import type { LabelSelector, ObjectRef } from '../source/gateway-api.ts'
import type { RegistryFiles } from '../remote/registry-access.ts'
import type { GrantMode } from '../model/translation.ts'
import { isLogLevel, type LogLevel } from '../runtime/log.ts'

/** Settings of the operator in a cluster, all by environment (operator.md §7.2). */
export interface Settings {
  readonly logLevel: LogLevel
  /** Host that data planes find the config stream under. */
  readonly xdsHost: string
  readonly xdsPort: number
  /** DNS domain of the cluster. */
  readonly clusterDomain: string
  readonly xdsMode: 'plaintext' | 'tls'
  readonly isXdsAuthenticated: boolean
  readonly namespaceSelectors: readonly LabelSelector[]
  /** parametersRef of the GatewayClasses that the operator makes, by class name. */
  readonly classParameters: ReadonlyMap<string, ObjectRef>
  /** Default image of data planes; the parts that are set. */
  readonly proxyImage: { readonly registry?: string; readonly repository?: string; readonly tag?: string }
  readonly backendGrants: GrantMode
  /** InferencePools are read, and pods as their endpoints. */
  readonly isInferenceEnabled: boolean
  readonly isLeaderElected: boolean
  /** Whether metrics include those of the process itself. */
  readonly isProcessMeasured: boolean
  /** Namespace of the operator itself: its Lease, its certificate. */
  readonly namespace: string
  /** Name of this replica. */
  readonly identity: string
  readonly healthPort: number
  readonly metricsPort: number
  /** Loopback only. */
  readonly adminPort: number
  readonly kubeconfig: string | undefined
  readonly registryFiles: RegistryFiles
}

const STRICT: GrantMode = 'route-and-policy'

type Environment = Readonly<Record<string, string | undefined>>

/** A mistake in one variable; thrown while it is read, and collected. */
class SettingError extends Error {}

/**
 * Reads the settings. Throws one error that names every variable with a bad value, its value and what to write instead.
 * @param clusterDomain DNS domain of the cluster
 */
export function readSettings(env: Environment, clusterDomain = 'cluster.local'): Settings {
  const problems: string[] = []
  const read = <T>(name: string, fallback: T, parse: (text: string) => T): T => {
    const text = env[name]?.trim()
    if (text === undefined || text === '') return fallback
    try {
      return parse(text)
    } catch (error) {
      if (!(error instanceof SettingError)) throw error
      problems.push(`${name}=${text.length > 80 ? `${text.slice(0, 77)}...` : text}: ${error.message}`)
      return fallback
    }
  }
  const namespace = read('POD_NAMESPACE', SYSTEM_NAMESPACE, parseName)
  const image = Object.fromEntries(
    (['registry', 'repository', 'tag'] as const).flatMap((part) => {
      const value = env[`PROXY_IMAGE_${part.toUpperCase()}`]
      return value === undefined || value === '' ? [] : [[part, value]]
    }),
  )
  const serviceName = read('PROXY_XDS_SERVICE_NAME', 'proxy', parseName)
  const settings: Settings = {
    // An unknown level counts as info, so that a level of another program still produces logs (operator.md §7.1).
    logLevel: read<LogLevel>('PROXY_LOG_LEVEL', 'info', (text) => (isLogLevel(text) ? text : 'info')),
    xdsHost: read('PROXY_XDS_SERVICE_HOST', `${serviceName}.${namespace}.svc.${clusterDomain}`, (text) => text),
    xdsPort: read('PROXY_XDS_SERVICE_PORT', XDS_PORT, parsePort),
    clusterDomain,
    xdsMode: read<Settings['xdsMode']>('PROXY_XDS_MODE', 'plaintext', parseMode),
    isXdsAuthenticated: read('PROXY_XDS_AUTH', true, parseBoolean),
    namespaceSelectors: read<readonly LabelSelector[]>('PROXY_DISCOVERY_NAMESPACE_SELECTORS', [], parseSelectors),
    classParameters: read<Settings['classParameters']>('PROXY_GATEWAY_CLASS_PARAMETERS_REFS', new Map(), parseClassParameters),
    proxyImage: image,
    backendGrants: read('PROXY_BACKEND_REF_GRANT_MODE', STRICT, parseGrants),
    isInferenceEnabled: read('PROXY_ENABLE_INFER_EXT', false, parseBoolean),
    isLeaderElected: !read('PROXY_DISABLE_LEADER_ELECTION', false, parseBoolean),
    isProcessMeasured: read('PROXY_ENABLE_BUILTIN_DEFAULT_METRICS', false, parseBoolean),
    namespace,
    identity: read('POD_NAME', hostname(), (text) => text),
    healthPort: read('PROXY_HEALTH_PORT', 9093, parsePort),
    metricsPort: read('PROXY_METRICS_PORT', 9092, parsePort),
    adminPort: read('PROXY_ADMIN_PORT', 9095, parsePort),
    kubeconfig: env['KUBECONFIG'],
    registryFiles: readRegistryFiles(env),
  }
  if (problems.length > 0) throw new Error(`bad settings:\n  ${problems.join('\n  ')}`)
  return settings
}

/** Paths of files with CAs and credentials for registries of plugins; an empty value is none. Both modes have them. */
export function readRegistryFiles(env: Environment): RegistryFiles {
  return { ca: env['PROXY_REGISTRY_CA_FILE'] || undefined, config: env['PROXY_REGISTRY_CONFIG_FILE'] || undefined }
}

/** Which references to other namespaces need a ReferenceGrant; both modes and `proxyctl lint` have the variable. */
export function readGrantMode(env: Environment): GrantMode {
  const text = env['PROXY_BACKEND_REF_GRANT_MODE']?.trim() ?? ''
  try {
    return text === '' ? STRICT : parseGrants(text)
  } catch (error) {
    throw new Error(`PROXY_BACKEND_REF_GRANT_MODE=${text}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

function fail(message: string): never {
  throw new SettingError(message)
}

function parseBoolean(text: string): boolean {
  if (/^(true|1|yes|on)$/i.test(text)) return true
  return /^(false|0|no|off)$/i.test(text) ? false : fail('write true or false')
}

function parsePort(text: string): number {
  const port = Number(text)
  return /^\d+$/.test(text) && port <= 65_535 ? port : fail('write a port from 1 to 65535 (0 picks a free one)')
}

function parseName(text: string): string {
  return /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text) ? text : fail('write a Kubernetes name: lower-case letters, digits and -')
}

function parseMode(text: string): Settings['xdsMode'] {
  if (text === 'tls' || text === 'true') return 'tls'
  return text === 'plaintext' || text === 'false' ? 'plaintext' : fail('write plaintext or tls')
}

function parseGrants(text: string): GrantMode {
  return text === 'none' || text === 'route' || text === 'route-and-policy' ? text : fail('write none, route or route-and-policy')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    return fail(`is not JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === 'string'

/** A JSON array of label selectors. An operator that is not known would match nothing, silently: it is refused. */
function parseSelectors(text: string): LabelSelector[] {
  const value = parseJson(text)
  if (!Array.isArray(value)) return fail('write a JSON array of label selectors, for example [{"matchLabels":{"team":"a"}}]')
  return value.map((selector: unknown, index) => {
    const at = `[${index}]`
    if (!isRecord(selector)) return fail(`${at}: write an object with matchLabels or matchExpressions`)
    const unknown = Object.keys(selector).find((key) => key !== 'matchLabels' && key !== 'matchExpressions')
    if (unknown !== undefined) return fail(`${at}.${unknown} is not known; use matchLabels or matchExpressions`)
    const { matchLabels = {}, matchExpressions = [] } = selector
    if (!isRecord(matchLabels) || !Object.values(matchLabels).every(isText)) return fail(`${at}.matchLabels: write an object of strings`)
    if (!Array.isArray(matchExpressions)) return fail(`${at}.matchExpressions: write an array`)
    matchExpressions.forEach((expression: unknown, place) => checkExpression(expression, `${at}.matchExpressions[${place}]`))
    return selector
  })
}

function checkExpression(expression: unknown, at: string): void {
  if (!isRecord(expression) || !isText(expression['key']) || expression['key'] === '') return fail(`${at}.key is required; name a label`)
  const { operator, values } = expression
  if (operator === 'In' || operator === 'NotIn') {
    if (!Array.isArray(values) || values.length === 0 || !values.every(isText)) return fail(`${at}.values: ${operator} needs an array of strings`)
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (Array.isArray(values) && values.length > 0) return fail(`${at}.values: ${operator} takes none; remove it`)
  } else return fail(`${at}.operator: use In, NotIn, Exists or DoesNotExist`)
}

function parseClassParameters(text: string): Map<string, ObjectRef> {
  const value = parseJson(text)
  if (!isRecord(value)) return fail(`write a JSON object, for example {"${GATEWAY_CLASS}":{"name":"defaults","namespace":"${SYSTEM_NAMESPACE}"}}`)
  return new Map(
    Object.entries(value).map(([className, ref]) => {
      const { group = GROUP, kind = 'ProxyParameters', name, namespace } = isRecord(ref) ? ref : {}
      for (const [field, part] of Object.entries({ name, namespace, group, kind }))
        if (!isText(part) || part.trim() === '') return fail(`${className}.${field} must be set, to a string that is not blank`)
      return [className, { group, kind, name, namespace } as ObjectRef]
    }),
  )
}
