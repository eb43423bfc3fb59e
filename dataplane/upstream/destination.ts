import type { ErrorCode } from '#api/errors.ts'
import type { ServicePort } from '#gen/config/types.ts'
import type { BackendType, Exchange } from '../exchange/exchange.ts'
import { isGrpcRequest } from '../exchange/error.ts'
import { hostOf, portOf, withoutBrackets } from '../http/message.ts'
import type { BackendTransformation } from '../transformation/backend.ts'
import type { UpstreamAuth } from './auth.ts'
import { Balancer, type BalancerOptions, type EndpointState } from './balancer/balancer.ts'
import type { HealthPolicy } from './balancer/health.ts'
import type { PlacedEndpoint } from './balancer/locality.ts'
import type { TcpProbes, Transport, Tunnel, UpstreamPool, UpstreamTls } from './types.ts'

/** What choosing an endpoint and a protocol needs to know of an exchange; a call of our own has no more. */
export interface Caller {
  readonly request: Exchange['request']
  readonly connection: Pick<Exchange['connection'], 'tls'>
}

export type HttpChoice = 'http1' | 'http2' | 'negotiate'

/** How a destination is spoken to: what its backend policies say, defaults filled in (traffic.md §13). */
export interface UpstreamSettings {
  readonly connectMs: number
  readonly probes: TcpProbes | undefined
  /** Per attempt, until the response head; undefined: unlimited. */
  readonly requestMs: number | undefined
  readonly tls: UpstreamTls | undefined
  readonly httpVersion: 'HTTP1' | 'HTTP2' | undefined
  /** Set when a security piece does not resolve: connections fail with this text rather than go out unprotected. */
  readonly broken: string | undefined
  /** Credentials of its requests. */
  readonly auth: UpstreamAuth | undefined
  readonly health: HealthPolicy | undefined
  /** Changes to its requests and responses. */
  readonly transformation: BackendTransformation | undefined
  /** The proxy that connections go through. */
  readonly tunnel: Tunnel | undefined
}

export const defaultSettings: UpstreamSettings = {
  connectMs: 10_000,
  probes: undefined,
  requestMs: undefined,
  tls: undefined,
  httpVersion: undefined,
  broken: undefined,
  auth: undefined,
  health: undefined,
  transformation: undefined,
  tunnel: undefined,
}

export type PoolFactory = (kind: HttpChoice, transport: Transport) => UpstreamPool

/** What a destination's config says; replaced as a whole on a config change. */
export interface DestinationConfig {
  readonly endpoints: readonly PlacedEndpoint[]
  readonly appProtocol: ServicePort['appProtocol']
  readonly settings: UpstreamSettings
  /** Authority under hostRewrite Auto; undefined for IP addresses, where the client's Host stays. */
  readonly hostname: string | undefined
  /** What happens to Host where no policy says it: Auto for ProxyBackends, None for Services (traffic.md §8.11). */
  readonly isHostRewritten: boolean
  /** The endpoint is the request's own authority (dynamicForwardProxy). */
  readonly isDynamic: boolean
  readonly error: ErrorCode | undefined
  /** Default: unknown. */
  readonly type?: BackendType
  /** Who chooses among the endpoints; default: nobody, they are balanced. */
  readonly picker?: EndpointPicker | undefined
}

/** The endpoint picker of an InferencePool. */
export interface EndpointPicker {
  readonly destination: Destination
  /** Balances when the picker cannot be asked; otherwise requests fail. */
  readonly isFailOpen: boolean
}

const IDLE_MS = 90_000
const DYNAMIC_ENDPOINT_LIMIT = 10_000

/**
 * One thing that requests can be sent to. Routes hold it by reference, so a change of its endpoints or settings touches no
 * route; connections and what was learned about endpoints survive as long as the transport stays the same.
 */
export class Destination {
  /** `<namespace>/<name>` or an address; what logs and metrics call it. */
  readonly name: string
  readonly #createPool: PoolFactory
  readonly #balancer: Balancer
  readonly #pools = new Map<EndpointState, Map<HttpChoice, UpstreamPool>>()
  readonly #dynamic = new Map<string, Balancer>()
  #config: DestinationConfig
  #transportKey: string

  constructor(name: string, config: DestinationConfig, createPool: PoolFactory, options: BalancerOptions = {}) {
    this.name = name
    this.#createPool = createPool
    this.#balancer = new Balancer(options)
    this.#config = config
    this.#transportKey = transportKeyOf(config.settings)
    this.#balancer.update(config.endpoints)
  }

  get settings(): UpstreamSettings {
    return this.#config.settings
  }

  /** Authority that requests to it get; undefined leaves the client's. `isAuto`: a policy asked for hostRewrite Auto. */
  authorityFor(isAuto: boolean): string | undefined {
    return isAuto || this.#config.isHostRewritten ? this.#config.hostname : undefined
  }

  /** Whether that is what it stands for: its name, a shorter form of a Service's, or an address of its own. `port`: one of its endpoints' ports, too. */
  isAt(host: string, port?: number): boolean {
    const { hostname, endpoints } = this.#config
    if (port !== undefined && !endpoints.some((endpoint) => endpoint.port === port)) return false
    if (hostname !== undefined && (hostname === host || hostname.startsWith(`${host}.`))) return true
    return endpoints.some(({ address }) => address === host)
  }

  get error(): ErrorCode | undefined {
    return this.#config.error
  }

  get type(): BackendType {
    return this.#config.type ?? 'unknown'
  }

  get picker(): EndpointPicker | undefined {
    return this.#config.picker
  }

  get isDynamic(): boolean {
    return this.#config.isDynamic
  }

  update(config: DestinationConfig): void {
    const transportKey = transportKeyOf(config.settings)
    if (transportKey !== this.#transportKey) this.#closePools(() => true)
    this.#config = config
    this.#transportKey = transportKey
    this.#balancer.update(config.endpoints)
    if (config.settings.health?.eviction === undefined) this.#balancer.restoreAll()
    const alive = new Set(this.#balancer.endpoints)
    if (!config.isDynamic) this.#closePools((endpoint) => !alive.has(endpoint))
  }

  /** An endpoint for this request, or undefined when there is none. */
  pick(exchange: Caller, avoid?: EndpointState): EndpointState | undefined {
    return this.#config.isDynamic ? this.#pickDynamic(exchange) : this.#balancer.pick(avoid)
  }

  /**
   * Why `pick` or `pickForConnection` returned undefined, for logs. `authority` is that of the request or connection. Eviction is never the
   * reason: while all endpoints are evicted, the balancer uses them nevertheless.
   */
  explainNoEndpoint(authority: string | undefined): string {
    return this.#config.isDynamic ? `the authority "${authority ?? ''}" names no host and port to connect to` : `${this.name} has no endpoints`
  }

  /** The endpoint of that label (`host:port`), for who has to stay with it: also while it drains or is evicted. Undefined: it is gone. */
  endpointAt(label: string): EndpointState | undefined {
    return this.#balancer.find(label)
  }

  /** How a call went; `seconds` until its response head count for successes only. */
  record(endpoint: EndpointState, isHealthy: boolean, seconds: number): void {
    // The one endpoint of an authority has no other that could take over.
    this.#balancer.record(endpoint, isHealthy, seconds, this.#config.isDynamic ? undefined : this.#config.settings.health?.eviction)
  }

  /** An endpoint for a raw connection. `authority` is where dynamicForwardProxy goes. */
  pickForConnection(authority: string | undefined): EndpointState | undefined {
    return this.#config.isDynamic ? this.#dynamicEndpoint(authority ?? '', 443) : this.#balancer.pick()
  }

  poolFor(endpoint: EndpointState, exchange: Caller): UpstreamPool {
    const kind = this.chooseHttp(exchange)
    let pools = this.#pools.get(endpoint)
    if (pools === undefined) this.#pools.set(endpoint, (pools = new Map()))
    let pool = pools.get(kind)
    if (pool === undefined) pools.set(kind, (pool = this.#createPool(kind, this.transportTo(endpoint))))
    return pool
  }

  transportTo(endpoint: EndpointState): Transport {
    const { tls, tunnel, probes } = this.#config.settings
    return { host: endpoint.address, port: endpoint.port, tls, keepAlive: { idleMs: IDLE_MS }, tunnel, probes }
  }

  /** HTTP version: policy, then appProtocol, then what the client speaks; TLS negotiates unless a policy fixed it (traffic.md §13). */
  chooseHttp(exchange: Caller): HttpChoice {
    const { request, connection } = exchange
    if (request.upgrade !== undefined || request.method === 'CONNECT') return 'http1'
    const { settings, appProtocol } = this.#config
    if (settings.httpVersion !== undefined) return settings.httpVersion === 'HTTP2' ? 'http2' : 'http1'
    if (appProtocol === 'HTTP2' || appProtocol === 'GRPC') return 'http2'
    if (appProtocol === 'HTTP11' || appProtocol === 'WS') return 'http1'
    if (settings.tls !== undefined) return 'negotiate'
    if (connection.tls !== undefined) return isGrpcRequest(request) ? 'http2' : 'http1'
    return request.version === 'HTTP/2' ? 'http2' : 'http1'
  }

  close(): void {
    this.#closePools(() => true)
    // Nobody is counted as evicted from what is gone.
    this.#balancer.restoreAll()
  }

  #pickDynamic({ request }: Caller): EndpointState | undefined {
    return this.#dynamicEndpoint(request.authority, request.scheme === 'https' ? 443 : 80)
  }

  #dynamicEndpoint(authority: string, defaultPort: number): EndpointState | undefined {
    const host = withoutBrackets(hostOf(authority))
    const port = portOf(authority) ?? defaultPort
    if (host === '' || !Number.isInteger(port) || port < 1 || port > 65_535) return undefined
    const key = `${host}:${port}`
    let balancer = this.#dynamic.get(key)
    if (balancer === undefined) {
      // Destinations are the clients' choice: their number must not grow without bound.
      if (this.#dynamic.size >= DYNAMIC_ENDPOINT_LIMIT) this.#forgetOldestDynamic()
      balancer = new Balancer()
      balancer.update([{ address: host, port }])
      this.#dynamic.set(key, balancer)
    }
    return balancer.pick()
  }

  #forgetOldestDynamic(): void {
    const oldest = this.#dynamic.entries().next().value
    if (oldest === undefined) return
    this.#dynamic.delete(oldest[0])
    const gone = new Set(oldest[1].endpoints)
    this.#closePools((endpoint) => gone.has(endpoint))
  }

  #closePools(isGone: (endpoint: EndpointState) => boolean): void {
    for (const [endpoint, pools] of this.#pools) {
      if (!isGone(endpoint)) continue
      this.#pools.delete(endpoint)
      for (const pool of pools.values()) pool.close()
    }
  }
}

/** Connections of one key are as good as each other. */
function transportKeyOf({ tls, tunnel, probes }: UpstreamSettings): string {
  return JSON.stringify([tls, tunnel?.key, probes])
}

/** Authority of a request to a destination: rewritten unless a filter fixed it (traffic.md §8.11). */
export function authorityFor({ request, isAuthorityFixed, isHostRewritten }: Exchange, destination: Destination): string {
  return (isAuthorityFixed ? undefined : destination.authorityFor(isHostRewritten)) ?? request.authority
}
