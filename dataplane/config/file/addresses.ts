import { AddressRanges, literalAddresses, refuseHost, type DialRules } from '#api/address.ts'
import { ADMIN_PORT, LIVENESS_PORT, PEER_PORT, READINESS_PORT, STATS_PORT } from '#api/names.ts'
import type { ConfigFile, FileBind, FileListener, FileWeightedBackend, GatewayRef, Policy, Traffic, ProcessConfig } from '#gen/config/types.ts'
import { authorityOf } from '../../http/message.ts'

/**
 * Whether every request to a port has to authenticate: a port of a file that this is not true for listens on loopback by default, because its backends may have
 * credentials that anyone who reaches the port could use.
 */
export function authenticatesClients(bind: FileBind, file: ConfigFile, gateway: GatewayRef): boolean {
  const policies = (file.policies ?? []).filter(
    ({ target }) => target.kind === 'Gateway' && target.namespace === gateway.namespace && target.name === gateway.name,
  )
  return bind.listeners.length > 0 && bind.listeners.every((listener) => isAuthenticated(listener, policies, file))
}

/** Whether other machines can use the credentials of a port's backends: it has an address that is not loopback, and admits every client. */
export function isOpen(bind: FileBind, file: ConfigFile, gateway: GatewayRef): boolean {
  const { addresses, listeners } = bind
  if (addresses === undefined || (addresses.length > 0 && addresses.every(isLoopback))) return false
  return (
    listeners.some((listener) => hasCredentials(listener, file) && listener.policies?.ipAllowList === undefined) && !authenticatesClients(bind, file, gateway)
  )
}

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.')

/** Whether a route leads to models, to MCP servers, or to a backend with a credential. */
function hasCredentials({ routes = [] }: FileListener, file: ConfigFile): boolean {
  const backends = routes.flatMap((route) => route.backends ?? [])
  return backends.some((one) => {
    const { ai, mcp, policies } = one.backend === undefined ? one : (file.backends?.find(({ name }) => name === one.backend) ?? one)
    return ai !== undefined || mcp !== undefined || policies?.auth !== undefined
  })
}

function isAuthenticated(listener: FileListener, policies: readonly Policy[], file: ConfigFile): boolean {
  if (listener.tls?.clientCa !== undefined) return true
  const { routes = [], tcpRoutes = [] } = listener
  // Traffic policies are those of HTTP requests.
  if (tcpRoutes.length > 0) return false
  const own = policies.filter(({ target }) => target.section === undefined || target.section === listener.name)
  if ([listener.policies, ...own.map(({ traffic }) => traffic)].some(demandsCredentials)) return true
  return routes.length > 0 && routes.every((route) => demandsCredentials(route.policies) || areAuthenticated(route.backends, file))
}

/** MCP backends can authenticate their clients themselves. */
function areAuthenticated(backends: readonly FileWeightedBackend[] = [], file: ConfigFile): boolean {
  const policiesOf = ({ backend, policies }: FileWeightedBackend): FileWeightedBackend['policies'] =>
    backend === undefined ? policies : file.backends?.find(({ name }) => name === backend)?.policies
  return backends.length > 0 && backends.every((backend) => isStrict(policiesOf(backend)?.mcp?.authentication))
}

function demandsCredentials(traffic: Traffic | undefined): boolean {
  if (traffic === undefined) return false
  const { jwtAuthentication, basicAuthentication, apiKeyAuthentication, extAuth } = traffic
  return extAuth !== undefined || [jwtAuthentication, basicAuthentication, apiKeyAuthentication].some(isStrict)
}

/** Optional and permissive modes admit requests without a credential. */
const isStrict = (policy: { readonly mode?: string } | undefined): boolean => policy !== undefined && (policy.mode ?? 'Strict') === 'Strict'

/** Addresses and ports of a bind, as a person reads them: `127.0.0.1:4000`, `[::1]:4000`, `*:4000` for all addresses. */
export function describePlaces({ port, addresses = [] }: { readonly port: number; readonly addresses?: readonly string[] }): string[] {
  return addresses.length === 0 ? [`*:${port}`] : addresses.map((address) => authorityOf(address, port))
}

/** What a data plane outside of pods connects to for the author of its file (traffic.md §13.2). */
export function dialRulesOf({ config = {} }: ConfigFile): DialRules {
  const ports = [...ownPorts(config)]
  return { isLoopbackAllowed: true, permitted: new AddressRanges(config.upstreams?.addresses ?? []), ports: () => ports, addresses: () => [] }
}

function* ownPorts({ adminAddr, statsAddr, readinessAddr }: ProcessConfig): Generator<number> {
  yield* [PEER_PORT, LIVENESS_PORT]
  for (const [address, port] of [
    [adminAddr, ADMIN_PORT],
    [statsAddr, STATS_PORT],
    [readinessAddr, READINESS_PORT],
  ] as const)
    yield Number(/:(\d+)$/.exec(address ?? '')?.[1] ?? port)
}

/** Why no request is sent to a host whose addresses need no DNS, and what to write instead; undefined: requests are sent. */
export function describeRefusedHost(host: string, port: number, rules: DialRules): string | undefined {
  const [address] = literalAddresses(host)
  const reason = address === undefined ? undefined : refuseHost(host, port, rules)
  if (address === undefined || reason === undefined) return undefined
  // No setting permits the ports of the gateway.
  const fix = reason.endsWith(' address') ? `use another host, or add ${address} to config.upstreams.addresses` : 'use another port'
  return `requests to ${host}:${port} fail with 503, because it is ${reason}; ${fix}`
}
