import { METRIC_PREFIX } from '#api/names.ts'
import type { Reason } from '#api/errors.ts'
import type { Exchange, RouteLabels } from '../../exchange/exchange.ts'
import { attemptsOf } from '../attempts.ts'
import { CALL_SECONDS, ROUTE_LABELS, UNKNOWN, routeValues } from './area.ts'
import { callSeconds, primarySubtype } from './call.ts'
import { protocolOf, reasonOf, statusOf, type Protocol } from '../outcome.ts'
import { createHistogramSeries, createRegistry, OVERFLOW_LABEL, type HistogramSeries, type Registry, type Series } from './registry.ts'

const PROCESSING_SECONDS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25] as const
const HANDSHAKE_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8] as const

const REQUEST_LABELS = ['backend', 'protocol', 'method', 'status', 'reason', ...ROUTE_LABELS] as const

/** Methods that get their own label value; a client could invent any number of others. */
const methods = ['other', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE'] as const

export type DownstreamProtocol = 'http' | 'https' | 'tcp' | 'tls'

/** Series of the connections of one bind, listener and protocol: add to `value` directly. */
export interface DownstreamSeries {
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
  /** The upstream call of the request. */
  readonly call: HistogramSeries
  /** Made by the first retry; most routes never have one. */
  retries: Series | undefined
}

export interface Metrics {
  readonly registry: Registry
  /** Counts a finished exchange. `exchange.labels` must be the one object of its compiled route: series are cached by its identity. */
  recordExchange(exchange: Exchange): void
  /** To be kept by its caller; '' stands for what is not known (yet), such as the listener of a plaintext connection. */
  downstream(bind: string, gateway: string, listener: string, protocol: DownstreamProtocol): DownstreamSeries
  /** Connections that were closed before they carried anything; `cause` is one of a few words. */
  dropped(bind: string, cause: string): Series
  /** Seconds until a new upstream connection is usable. */
  upstreamConnect(transport: 'plaintext' | 'tls'): HistogramSeries
  /** Forgets the request series of routes that are gone; for config changes. `route` is the label value, `<namespace>/<name>`. */
  retainRoutes(isAlive: (route: string) => boolean): void
}

type BackendCache = Map<string, Map<number, RequestSeries>>

export function createMetrics(options: { version: string; maxSeries?: number }): Metrics {
  const registry = createRegistry(options)
  registry.info(`${METRIC_PREFIX}build_info`, 'The running build.', { tag: options.version })
  const counter = (name: string, help: string, labels: readonly string[]) => registry.counter(METRIC_PREFIX + name, help, labels)
  const histogram = (name: string, help: string, bounds: readonly number[], labels: readonly string[]) =>
    registry.histogram(METRIC_PREFIX + name, help, bounds, labels)

  const requests = counter('requests_total', 'Finished requests.', REQUEST_LABELS)
  const durations = histogram('request_duration_seconds', 'Time from the request head to the last byte of the response.', CALL_SECONDS, REQUEST_LABELS)
  const responseBytes = counter('response_bytes_total', 'Bytes of response bodies.', REQUEST_LABELS)
  const retries = counter('retries_total', 'Attempts after the first.', REQUEST_LABELS)
  const processing = histogram(
    'request_processing_seconds',
    'Time from the request head to the first upstream attempt: what the gateway itself took.',
    PROCESSING_SECONDS,
    ['backend', ...ROUTE_LABELS],
  )
  const responseProcessing = histogram(
    'response_processing_seconds',
    'Time from the response head of the upstream to that for the client: what the gateway itself took.',
    PROCESSING_SECONDS,
    ['backend', ...ROUTE_LABELS],
  )

  const connectionLabels = ['bind', 'gateway', 'listener', 'protocol']
  const connections = counter('downstream_connections_total', 'Accepted connections.', connectionLabels)
  const dropped = counter('downstream_connections_dropped_total', 'Connections closed before they carried anything.', ['bind', 'gateway', 'cause'])
  const open = registry.gauge(`${METRIC_PREFIX}downstream_connections_open`, 'Connections open now.', connectionLabels)
  const received = counter('downstream_received_bytes_total', 'Bytes read from clients, on the wire.', connectionLabels)
  const sent = counter('downstream_sent_bytes_total', 'Bytes written to clients, on the wire.', connectionLabels)
  const handshakes = histogram('tls_handshake_duration_seconds', 'Time of completed TLS handshakes with clients.', HANDSHAKE_SECONDS, connectionLabels)
  const connects = histogram('upstream_connect_duration_seconds', 'Time to establish upstream connections, TLS included.', HANDSHAKE_SECONDS, ['transport'])
  const calls = callSeconds(registry)

  const byLabels = new WeakMap<Partial<RouteLabels>, BackendCache>()
  /** Requests that no listener took, by bind. */
  const unrouted = new Map<string, BackendCache>()

  function cacheOf(exchange: Exchange): BackendCache {
    const { labels, connection } = exchange
    const known = labels === undefined ? unrouted.get(connection.bind) : byLabels.get(labels)
    if (known !== undefined) return known
    const cache: BackendCache = new Map()
    if (labels === undefined) unrouted.set(connection.bind, cache)
    else byLabels.set(labels, cache)
    return cache
  }

  function bindSeries(exchange: Exchange, method: string): RequestSeries {
    const values = requestValues(exchange, method)
    return {
      requests: requests.series(...values),
      duration: durations.series(...values),
      bytes: responseBytes.series(...values),
      processing: processing.series(exchange.backend ?? UNKNOWN, ...routeValues(exchange)),
      responseProcessing: responseProcessing.series(exchange.backend ?? UNKNOWN, ...routeValues(exchange)),
      call: calls('Primary', primarySubtype[protocolOf(exchange)]),
      retries: undefined,
    }
  }

  return {
    registry,
    recordExchange(exchange) {
      const cache = cacheOf(exchange)
      const backend = exchange.backend ?? UNKNOWN
      let byOutcome = cache.get(backend)
      if (byOutcome === undefined) cache.set(backend, (byOutcome = new Map()))
      const methodIndex = indexOfMethod(exchange.receivedMethod)
      const key = ((statusOf(exchange) * 32 + reasonIndex[reasonOf(exchange)]) * 16 + methodIndex) * 8 + protocolIndex[protocolOf(exchange)]
      let series = byOutcome.get(key)
      if (series === undefined) byOutcome.set(key, (series = bindSeries(exchange, methods[methodIndex] ?? 'other')))

      series.requests.value++
      series.duration.observe((exchange.finishedAtMs - exchange.startedAtMs) / 1000)
      series.bytes.value += exchange.responseBytes
      if (exchange.retryAttempt > 0) {
        series.retries ??= retries.series(...requestValues(exchange, methods[methodIndex] ?? 'other'))
        series.retries.value += exchange.retryAttempt
        for (const { startedAtMs, endedAtMs } of attemptsOf(exchange)) series.call.observe((endedAtMs - startedAtMs) / 1000)
      }
      if (exchange.upstreamStartedAtMs > 0) {
        series.processing.observe((exchange.upstreamStartedAtMs - exchange.startedAtMs) / 1000)
        if (exchange.responseHeadAtMs > 0) recordResponse(exchange, series)
      }
    },
    downstream(bindKey, gateway, listener, protocol) {
      const values = [bindKey || UNKNOWN, gateway || gatewayOf(bindKey), listener || UNKNOWN, protocol]
      return {
        connections: connections.series(...values),
        open: open.series(...values),
        receivedBytes: received.series(...values),
        sentBytes: sent.series(...values),
        handshake: protocol === 'https' || protocol === 'tls' ? handshakes.series(...values) : createHistogramSeries(HANDSHAKE_SECONDS),
      }
    },
    dropped: (bindKey, cause) => dropped.series(bindKey || UNKNOWN, gatewayOf(bindKey), cause),
    upstreamConnect: (transport) => connects.series(transport),
    retainRoutes(isAlive) {
      const isGone = (route: string): boolean => route !== UNKNOWN && route !== OVERFLOW_LABEL && !isAlive(route)
      registry.drop('route', isGone)
    },
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

// Small numbers, so that an outcome packs into one integer key.
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
}
