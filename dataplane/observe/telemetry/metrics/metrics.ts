import { METRIC_PREFIX } from '#api/names.ts'
import type { Reason } from '#api/errors.ts'
import type { Exchange, RouteLabels } from '../../../request/exchange/exchange.ts'
import { attemptsOf } from '../attempts.ts'
import { CALL_SECONDS, ROUTE_LABELS, UNKNOWN, routeValues } from './area.ts'
import { callSeconds, primarySubtype } from './call.ts'
import { protocolOf, reasonOf, statusOf, type Protocol } from '../outcome.ts'
import { createHistogramSeries, createRegistry, OVERFLOW_LABEL, type Family, type HistogramSeries, type Registry, type Series } from './registry.ts'

const PROCESSING_SECONDS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25] as const
const HANDSHAKE_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8] as const

const REQUEST_LABELS = ['backend', 'protocol', 'method', 'status', 'reason', ...ROUTE_LABELS] as const

/** Methods with a label value of their own. All others share `other`, because clients can send any method. */
const methods = ['other', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE'] as const

type DownstreamProtocol = 'http' | 'https' | 'tcp' | 'tls'

/** Series of the connections of one bind, listener and protocol: add to `value` directly. */
interface DownstreamSeries {
  readonly connections: Series
  readonly open: Series
  readonly receivedBytes: Series
  readonly sentBytes: Series
  /** Seconds of TLS handshakes. */
  readonly handshake: HistogramSeries
}

/** Series of the requests of one route, backend, method, status, … */
interface RequestSeries {
  readonly requests: Series
  readonly duration: HistogramSeries
  readonly bytes: Series
  readonly processing: HistogramSeries
  readonly responseProcessing: HistogramSeries
  /** Duration of the upstream call. */
  readonly call: HistogramSeries
  /** Created at the first retry, because most routes never have one. */
  retries: Series | undefined
}

/** The `proxy_*` metrics of requests and connections. */
export interface Metrics {
  readonly registry: Registry
  /** Counts a finished exchange. `exchange.labels` must be the one object of its compiled route: series are cached by its identity. */
  recordExchange(exchange: Exchange): void
  /** Returns series for the caller to keep. '' stands for an unknown value, such as the listener of a plaintext connection. */
  downstream(bind: string, gateway: string, listener: string, protocol: DownstreamProtocol): DownstreamSeries
  /** Connections closed before they carried data; `cause` is from a short fixed list. */
  dropped(bind: string, cause: string): Series
  /** Requests that were rejected before their head was parsed. */
  refused(bind: string, status: number): Series
  /** Seconds until a new upstream connection is usable. */
  upstreamConnect(transport: 'plaintext' | 'tls'): HistogramSeries
  /** Removes the series of deleted routes after a config change. `route` is the label value, `<namespace>/<name>`. */
  retainRoutes(isAlive: (route: string) => boolean): void
}

export function createMetrics(options: { version: string; maxSeries?: number }): Metrics {
  const registry = createRegistry(options)
  registry.info(`${METRIC_PREFIX}build_info`, 'The running build.', { tag: options.version })
  // The families appear in the exposition in the order in which they are created.
  const requests = new RequestMetrics(registry)
  const connections = new ConnectionMetrics(registry)
  return {
    registry,
    recordExchange: (exchange) => requests.record(exchange),
    downstream: (bind, gateway, listener, protocol) => connections.downstream(bind, gateway, listener, protocol),
    dropped: (bind, cause) => connections.dropped(bind, cause),
    refused: (bind, status) => connections.refused(bind, status),
    upstreamConnect: (transport) => connections.upstreamConnect(transport),
    retainRoutes: (isAlive) => retainRoutes(registry, isAlive),
  }
}

/** Removes the series of deleted routes; see `Metrics.retainRoutes`. */
export function retainRoutes(registry: Registry, isAlive: (route: string) => boolean): void {
  registry.drop('route', (route) => route !== UNKNOWN && route !== OVERFLOW_LABEL && !isAlive(route))
}

/** Backend -> packed outcome (see `RequestMetrics.record`) -> series. */
type BackendCache = Map<string, Map<number, RequestSeries>>

class RequestMetrics {
  readonly #requests: Family<Series>
  readonly #durations: Family<HistogramSeries>
  readonly #responseBytes: Family<Series>
  readonly #retries: Family<Series>
  readonly #processing: Family<HistogramSeries>
  readonly #responseProcessing: Family<HistogramSeries>
  readonly #calls: ReturnType<typeof callSeconds>
  readonly #byLabels = new WeakMap<Partial<RouteLabels>, BackendCache>()
  /** Requests that matched no listener, by bind. */
  readonly #unrouted = new Map<string, BackendCache>()

  constructor(registry: Registry) {
    this.#requests = registry.counter(`${METRIC_PREFIX}requests_total`, 'Finished requests.', REQUEST_LABELS)
    this.#durations = registry.histogram(
      `${METRIC_PREFIX}request_duration_seconds`,
      'Time from the request head to the last byte of the response.',
      CALL_SECONDS,
      REQUEST_LABELS,
    )
    this.#responseBytes = registry.counter(`${METRIC_PREFIX}response_bytes_total`, 'Bytes of response bodies.', REQUEST_LABELS)
    this.#retries = registry.counter(`${METRIC_PREFIX}retries_total`, 'Attempts after the first.', REQUEST_LABELS)
    this.#processing = registry.histogram(
      `${METRIC_PREFIX}request_processing_seconds`,
      'Time from the request head to the first upstream attempt: what the gateway itself took.',
      PROCESSING_SECONDS,
      ['backend', ...ROUTE_LABELS],
    )
    this.#responseProcessing = registry.histogram(
      `${METRIC_PREFIX}response_processing_seconds`,
      'Time from the response head of the upstream to that for the client: what the gateway itself took.',
      PROCESSING_SECONDS,
      ['backend', ...ROUTE_LABELS],
    )
    this.#calls = callSeconds(registry)
  }

  record(exchange: Exchange): void {
    const cache = this.#cacheOf(exchange)
    const backend = exchange.backend ?? UNKNOWN
    let byOutcome = cache.get(backend)
    if (byOutcome === undefined) cache.set(backend, (byOutcome = new Map()))
    const methodIndex = indexOfMethod(exchange.receivedMethod)
    const key = ((statusOf(exchange) * 32 + reasonIndex[reasonOf(exchange)]) * 16 + methodIndex) * 8 + protocolIndex[protocolOf(exchange)]
    let series = byOutcome.get(key)
    if (series === undefined) byOutcome.set(key, (series = this.#createSeries(exchange, methods[methodIndex] ?? 'other')))

    series.requests.value++
    series.duration.observe((exchange.finishedAtMs - exchange.startedAtMs) / 1000)
    series.bytes.value += exchange.responseBytes
    if (exchange.retryAttempt > 0) {
      series.retries ??= this.#retries.series(...requestValues(exchange, methods[methodIndex] ?? 'other'))
      series.retries.value += exchange.retryAttempt
      for (const { startedAtMs, endedAtMs } of attemptsOf(exchange)) series.call.observe((endedAtMs - startedAtMs) / 1000)
    }
    if (exchange.upstreamStartedAtMs > 0) {
      series.processing.observe((exchange.upstreamStartedAtMs - exchange.startedAtMs) / 1000)
      if (exchange.responseHeadAtMs > 0) recordResponse(exchange, series)
    }
  }

  #cacheOf({ labels, connection }: Exchange): BackendCache {
    const known = labels === undefined ? this.#unrouted.get(connection.bind) : this.#byLabels.get(labels)
    if (known !== undefined) return known
    const cache: BackendCache = new Map()
    if (labels === undefined) this.#unrouted.set(connection.bind, cache)
    else this.#byLabels.set(labels, cache)
    return cache
  }

  #createSeries(exchange: Exchange, method: string): RequestSeries {
    const values = requestValues(exchange, method)
    const backendValues = [exchange.backend ?? UNKNOWN, ...routeValues(exchange)]
    return {
      requests: this.#requests.series(...values),
      duration: this.#durations.series(...values),
      bytes: this.#responseBytes.series(...values),
      processing: this.#processing.series(...backendValues),
      responseProcessing: this.#responseProcessing.series(...backendValues),
      call: this.#calls('Primary', primarySubtype[protocolOf(exchange)]),
      retries: undefined,
    }
  }
}

class ConnectionMetrics {
  readonly #connections: Family<Series>
  readonly #dropped: Family<Series>
  readonly #refused: Family<Series>
  readonly #open: Family<Series>
  readonly #received: Family<Series>
  readonly #sent: Family<Series>
  readonly #handshakes: Family<HistogramSeries>
  readonly #connects: Family<HistogramSeries>

  constructor(registry: Registry) {
    const labels = ['bind', 'gateway', 'listener', 'protocol']
    const counter = (name: string, help: string, names: readonly string[]) => registry.counter(METRIC_PREFIX + name, help, names)
    this.#connections = counter('downstream_connections_total', 'Accepted connections.', labels)
    this.#dropped = counter('downstream_connections_dropped_total', 'Connections closed before they carried anything.', ['bind', 'gateway', 'cause'])
    this.#refused = counter('downstream_requests_refused_total', 'Requests that are not valid HTTP, rejected before their head was parsed.', [
      'bind',
      'gateway',
      'status',
    ])
    this.#open = registry.gauge(`${METRIC_PREFIX}downstream_connections_open`, 'Connections open now.', labels)
    this.#received = counter('downstream_received_bytes_total', 'Bytes read from clients, on the wire.', labels)
    this.#sent = counter('downstream_sent_bytes_total', 'Bytes written to clients, on the wire.', labels)
    const handshake = 'Time of completed TLS handshakes with clients.'
    this.#handshakes = registry.histogram(`${METRIC_PREFIX}tls_handshake_duration_seconds`, handshake, HANDSHAKE_SECONDS, labels)
    const connect = 'Time to establish upstream connections, TLS included.'
    this.#connects = registry.histogram(`${METRIC_PREFIX}upstream_connect_duration_seconds`, connect, HANDSHAKE_SECONDS, ['transport'])
  }

  downstream(bindKey: string, gateway: string, listener: string, protocol: DownstreamProtocol): DownstreamSeries {
    const values = [bindKey || UNKNOWN, gateway || gatewayOf(bindKey), listener || UNKNOWN, protocol]
    return {
      connections: this.#connections.series(...values),
      open: this.#open.series(...values),
      receivedBytes: this.#received.series(...values),
      sentBytes: this.#sent.series(...values),
      handshake: protocol === 'https' || protocol === 'tls' ? this.#handshakes.series(...values) : createHistogramSeries(HANDSHAKE_SECONDS),
    }
  }

  dropped(bindKey: string, cause: string): Series {
    return this.#dropped.series(bindKey || UNKNOWN, gatewayOf(bindKey), cause)
  }

  refused(bindKey: string, status: number): Series {
    return this.#refused.series(bindKey || UNKNOWN, gatewayOf(bindKey), String(status))
  }

  upstreamConnect(transport: 'plaintext' | 'tls'): HistogramSeries {
    return this.#connects.series(transport)
  }
}

/** A bind belongs to one Gateway, whose name ends its key: `<port>/<namespace>/<gateway>`. */
function gatewayOf(bindKey: string): string {
  return bindKey.slice(bindKey.indexOf('/') + 1) || UNKNOWN
}

function recordResponse({ upstreamStartedAtMs, responseHeadAtMs, answeredAtMs, retryAttempt }: Exchange, { call, responseProcessing }: RequestSeries): void {
  if (retryAttempt === 0) call.observe((responseHeadAtMs - upstreamStartedAtMs) / 1000)
  if (answeredAtMs > 0) responseProcessing.observe((answeredAtMs - responseHeadAtMs) / 1000)
}

function requestValues(exchange: Exchange, method: string): string[] {
  const status = statusOf(exchange)
  return [exchange.backend ?? UNKNOWN, protocolOf(exchange), method, status === 0 ? UNKNOWN : String(status), reasonOf(exchange), ...routeValues(exchange)]
}

function indexOfMethod(method: string): number {
  switch (method) {
    case 'GET':
      return 1
    case 'POST':
      return 3
    default:
      return Math.max(0, (methods as readonly string[]).indexOf(method))
  }
}

// Indices, so that an outcome packs into one integer key.
const protocolIndex: Readonly<Record<Protocol, number>> = { http: 0, tcp: 1, a2a: 2, mcp: 3, llm: 4 }
const reasonIndex: Readonly<Record<Reason, number>> = {
  Upstream: 0,
  DirectResponse: 1,
  NotFound: 2,
  NoHealthyBackend: 3,
  Internal: 4,
  InvalidRequest: 5,
  JwtAuth: 6,
  BasicAuth: 7,
  APIKeyAuth: 8,
  ExtAuth: 9,
  Authorization: 10,
  Timeout: 11,
  ExtProc: 12,
  RateLimit: 13,
  Guardrail: 14,
  MCP: 15,
  UpstreamFailure: 16,
  ClientClosed: 17,
  UpstreamDenied: 18,
  FaultInjection: 19,
}
