import type { ErrorCode } from '#api/errors.ts'
import type { ServicePort } from '#gen/config/types.ts'
import type { BackendType, Exchange } from '../../request/exchange/exchange.ts'
import { isGrpcRequest } from '../../request/exchange/error.ts'
import { hostOf, portOf, withoutBrackets } from '../../http/message.ts'
import type { BackendTransformation } from '../../request/transformation/backend.ts'
import type { UpstreamAuth } from './auth.ts'
import { Balancer, type BalancerOptions, type EndpointState, type PickNotes } from './balancer/balancer.ts'
import { hashKeyOf } from './balancer/hash.ts'
import { explainPick } from './balancer/explain.ts'
import type { HealthPolicy } from './balancer/health.ts'
import type { LoadBalancing } from './balancer/strategy.ts'
import type { PlacedEndpoint } from './balancer/locality.ts'
import type { OpenConnections } from './connections.ts'
import type { DestinationHooks } from './hooks.ts'
import type { LoopMarks } from './loop.ts'
import type { ConnectGuard, TcpProbes, Transport, Tunnel, UpstreamPool, UpstreamTls } from './types.ts'

/** Health and load of an endpoint, or of the LLM provider that it belongs to. */
export type Measured = Pick<EndpointState, 'health' | 'failures' | 'evicted' | 'latencySeconds' | 'pending'>

/** The parts of an exchange that select an endpoint and a protocol. Callouts have no more. */
export interface Caller {
  readonly request: Exchange['request']
  readonly connection: Pick<Exchange['connection'], 'tls'> & { readonly remoteAddress?: string }
}

/** HTTP version of a pool; 'negotiate' selects it by ALPN. */
export type HttpChoice = 'http1' | 'http2' | 'negotiate'

/** Connection settings of a destination: its backend policies with defaults (traffic.md §13). */
export interface UpstreamSettings {
  readonly connectMs: number
  readonly probes: TcpProbes | undefined
  /** Per attempt, until the response head; undefined: unlimited. */
  readonly requestMs: number | undefined
  readonly tls: UpstreamTls | undefined
  readonly httpVersion: 'HTTP1' | 'HTTP2' | undefined
  /** Set if TLS or credentials do not resolve: connections fail with this text instead of being unprotected. */
  readonly broken: string | undefined
  /** Credentials of its requests. */
  readonly auth: UpstreamAuth | undefined
  readonly health: HealthPolicy | undefined
  /** Undefined: LeastRequest. */
  readonly loadBalancer: LoadBalancing | undefined
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
  loadBalancer: undefined,
  transformation: undefined,
  tunnel: undefined,
}

/** Creates the pool of an endpoint. */
export type PoolFactory = (kind: HttpChoice, transport: Transport) => UpstreamPool

/** Config of a destination; replaced as a whole on a config change. */
export interface DestinationConfig {
  readonly endpoints: readonly PlacedEndpoint[]
  readonly appProtocol: ServicePort['appProtocol']
  readonly settings: UpstreamSettings
  /** Its name; undefined for IP addresses, which keep the client's Host. */
  readonly hostname: string | undefined
  /** Authority with hostRewrite Auto; default: `hostname`. */
  readonly authority?: string | undefined
  /** Default of hostRewrite: Auto for ProxyBackends, None for Services (traffic.md §8.11). */
  readonly isHostRewritten: boolean
  /** The endpoint is the authority of the request (dynamicForwardProxy). */
  readonly isDynamic: boolean
  /** Admits the addresses of a dynamic destination. */
  readonly guard?: ConnectGuard | undefined
  readonly error: ErrorCode | undefined
  /** Default: unknown. */
  readonly type?: BackendType
  /** Default: none. */
  readonly hooks?: DestinationHooks | undefined
}

/** The parts of all transports of a destination. */
type CommonTransport = Pick<Transport, 'marks' | 'connections'>

export interface DestinationOptions extends BalancerOptions {
  readonly marks?: LoopMarks | undefined
  readonly connections?: OpenConnections | undefined
}

const IDLE_MS = 90_000
const DYNAMIC_ENDPOINT_LIMIT = 10_000

/**
 * A target of requests, such as a port of a Service. Routes hold it by reference, so that a change of its endpoints or settings affects no
 * route. Connections and endpoint state are kept as long as the transport stays the same.
 */
export class Destination {
  /** `<namespace>/<name>` or an address: its name in logs and metrics. */
  readonly name: string
  readonly #createPool: PoolFactory
  readonly #common: CommonTransport
  readonly #balancer: Balancer
  readonly #pools = new Map<EndpointState, Map<HttpChoice, UpstreamPool>>()
  readonly #dynamic = new Map<string, Balancer>()
  #config: DestinationConfig
  #transportKey: string

  constructor(name: string, config: DestinationConfig, createPool: PoolFactory, { marks, connections, ...options }: DestinationOptions = {}) {
    this.name = name
    this.#common = { marks, connections: connections?.of(name) }
    this.#createPool = createPool
    this.#balancer = new Balancer(options)
    this.#config = config
    this.#transportKey = transportKeyOf(config)
    this.#balancer.update(config.endpoints, config.settings.loadBalancer)
  }

  get settings(): UpstreamSettings {
    return this.#config.settings
  }

  /** Authority of requests to it; undefined keeps the client's. `isAuto`: a policy sets hostRewrite Auto. */
  authorityFor(isAuto: boolean): string | undefined {
    const { isHostRewritten, authority, hostname } = this.#config
    return isAuto || isHostRewritten ? (authority ?? hostname) : undefined
  }

  /**
   * Whether `host` is this destination: its hostname, a shorter form of a Service's hostname, or the address of an endpoint. With `port`,
   * an endpoint must also have that port.
   */
  isAt(host: string, port?: number): boolean {
    const { hostname, endpoints } = this.#config
    if (port !== undefined && !endpoints.some((endpoint) => endpoint.port === port)) return false
    if (hostname !== undefined && (hostname === host || hostname.startsWith(`${host}.`))) return true
    return endpoints.some(({ address }) => address === host)
  }

  /** Set if health and load are measured for the whole destination, not for its endpoints. */
  measured: Measured | undefined

  /** Results of checks of endpoints have changed. */
  refresh(): void {
    this.#balancer.refresh()
  }

  /** All endpoints fail their checks. */
  get isDown(): boolean {
    return this.#balancer.isDown
  }

  /** Checks of one endpoint under equal keys have equal results. Contains credentials. */
  get probeKey(): string {
    const { settings, appProtocol, hostname, authority } = this.#config
    return JSON.stringify([this.name, this.#transportKey, settings.httpVersion, settings.auth, appProtocol, hostname, authority])
  }

  /** Endpoints of the config with their state; those of clients' choice (dynamicForwardProxy) are left out. */
  get endpoints(): readonly EndpointState[] {
    return this.#balancer.all
  }

  /** Those that the load balancer would pick from: the nearest that are not draining and not evicted. */
  get available(): readonly EndpointState[] {
    return this.#balancer.available
  }

  get error(): ErrorCode | undefined {
    return this.#config.error
  }

  get type(): BackendType {
    return this.#config.type ?? 'unknown'
  }

  get hooks(): DestinationHooks | undefined {
    return this.#config.hooks
  }

  /** Its endpoints are A2A agents. */
  get isA2a(): boolean {
    return this.#config.appProtocol === 'A2A'
  }

  get isDynamic(): boolean {
    return this.#config.isDynamic
  }

  update(config: DestinationConfig): void {
    const transportKey = transportKeyOf(config)
    if (transportKey !== this.#transportKey) this.#closePools(() => true)
    this.#config = config
    this.#transportKey = transportKey
    this.#balancer.update(config.endpoints, config.settings.loadBalancer)
    if (config.settings.health?.eviction === undefined) this.#balancer.restoreAll()
    const alive = new Set(this.#balancer.endpoints)
    if (!config.isDynamic) this.#closePools((endpoint) => !alive.has(endpoint))
  }

  /** Picks an endpoint for a request. Undefined if there is none, see `explainNoEndpoint`. `avoid`: the endpoint of the failed attempt. */
  pick(exchange: Caller, avoid?: EndpointState): EndpointState | undefined {
    return this.#config.isDynamic ? this.#pickDynamic(exchange) : this.#balancer.pick(avoid, undefined, this.keyOf(exchange))
  }

  /** The key of a request for ConsistentHash; undefined: it has none, or endpoints are picked otherwise. */
  keyOf(exchange: Caller): number | undefined {
    const hash = this.#config.settings.loadBalancer?.hash
    return hash && hashKeyOf(hash, exchange)
  }

  /** As `pick`, with the reason, for traces. */
  pickWithReason(exchange: Caller, avoid?: EndpointState): { readonly endpoint: EndpointState; readonly why: string } | undefined {
    if (this.#config.isDynamic) {
      const endpoint = this.#pickDynamic(exchange)
      return endpoint && { endpoint, why: 'the authority of the request' }
    }
    const notes: PickNotes = { compared: [], endpoints: [], available: [] }
    const endpoint = this.#balancer.pick(avoid, notes, this.keyOf(exchange))
    return endpoint && { endpoint, why: explainPick(endpoint, notes, avoid) }
  }

  /** An endpoint that is not in `failed`; undefined if there is none, or if the request itself names its endpoint. */
  pickOther(failed: ReadonlySet<EndpointState>): EndpointState | undefined {
    return this.#config.isDynamic ? undefined : this.#balancer.pickOther(failed)
  }

  /**
   * Why `pick` or `pickForConnection` returned undefined, for logs. `authority` is that of the request or connection. Eviction is never the
   * reason: while all endpoints are evicted, the balancer uses them nevertheless.
   */
  explainNoEndpoint(authority: string | undefined): string {
    return this.#config.isDynamic ? `the authority "${authority ?? ''}" names no host and port to connect to` : `${this.name} has no endpoints`
  }

  /** The endpoint with that label (`host:port`), also if it is draining or evicted. Undefined: it was removed. */
  endpointAt(label: string): EndpointState | undefined {
    return this.#balancer.find(label)
  }

  /** As `endpointAt`; undefined also if it is evicted while others are not. */
  availableAt(label: string): EndpointState | undefined {
    return this.#balancer.availableAt(label)
  }

  /** Records the outcome of a call; `seconds` until its response head count for successes only. `status` of the response; 0: the call failed. */
  record(endpoint: EndpointState, isHealthy: boolean, seconds: number, status = 0): void {
    // The single endpoint of a dynamic authority is never evicted: no other could replace it.
    this.#balancer.record(endpoint, isHealthy, seconds, this.#config.isDynamic ? undefined : this.#config.settings.health?.eviction, status)
  }

  /** Picks an endpoint for a raw connection. `authority` is the endpoint with dynamicForwardProxy. */
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
    return { host: endpoint.address, port: endpoint.port, tls, keepAlive: { idleMs: IDLE_MS }, tunnel, probes, guard: this.#config.guard, ...this.#common }
  }

  /** HTTP version by policy, then appProtocol, then the client's version; TLS negotiates unless a policy sets the version (traffic.md §13). */
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
    // Report the end of the evictions, so that they are not counted any more.
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
      // Clients choose the authorities: their number must be bounded.
      if (this.#dynamic.size >= DYNAMIC_ENDPOINT_LIMIT) this.#removeOldestDynamic()
      balancer = new Balancer()
      balancer.update([{ address: host, port }])
      this.#dynamic.set(key, balancer)
    }
    return balancer.pick()
  }

  #removeOldestDynamic(): void {
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

/** Connections with the same key are interchangeable. */
function transportKeyOf({ settings: { tls, tunnel, probes }, guard }: DestinationConfig): string {
  return JSON.stringify([tls, tunnel?.key, probes, guard?.key])
}

/** Authority of a request to a destination: rewritten unless a filter set it (traffic.md §8.11). */
export function authorityFor({ request, isAuthorityFixed, isHostRewritten }: Exchange, destination: Destination): string {
  return (isAuthorityFixed ? undefined : destination.authorityFor(isHostRewritten)) ?? request.authority
}
