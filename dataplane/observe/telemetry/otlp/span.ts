import { redactText } from '../redact.ts'
import { ExchangeView } from '../../../request/expression/view.ts'
import { isGrpcRequest } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { attemptsOf, type Attempt } from '../attempts.ts'
import { changeFields } from '../attributes.ts'
import { errorTextOf, logFieldOf, writeExchangeFields } from '../access-log/fields.ts'
import type { FieldSink } from '../field-sink.ts'
import { primarySubtype } from '../metrics/call.ts'
import { protocolOf, statusOf } from '../outcome.ts'
import type { CompiledTracing } from '../gateway.ts'
import { toEpochMs } from '../../../runtime/time.ts'
import { randomId, type ActiveTrace, type ClientSpan } from '../trace.ts'
import { AttributeSink } from './attributes.ts'
import { ProtoWriter } from './writer.ts'

const SERVER = 2
const CLIENT = 3
const ERROR = 2
const ATTRIBUTE = 0x4a
const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE'])

const scratch = new ProtoWriter(4096)
const statusScratch = new ProtoWriter(256)

/** Encodes and queues the spans of a finished request: a server span, and a client span per outbound call. */
export function exportSpans(exchange: Exchange, trace: ActiveTrace, { exporter, changes }: CompiledTracing): void {
  const write = (sink: FieldSink): void => {
    writeExchangeFields(exchange, sink)
    sink.plain('url.scheme', exchange.request.scheme)
    sink.plain('network.protocol.version', exchange.request.version.slice(5))
  }
  const change = changes === undefined ? write : changeFields(changes, new ExchangeView(exchange), write)
  scratch.clear()
  const sink = new AttributeSink(scratch, ATTRIBUTE, 'error')
  change(sink)
  writeSpan(trace.traceId, trace.spanId, trace.parentId, trace.flags, sink.spanName ?? nameOf(exchange), SERVER, exchange.startedAtMs, exchange.finishedAtMs)
  const error = errorTextOf(exchange)
  if (error !== undefined || statusOf(exchange) >= 500) writeError(error ?? `status ${statusOf(exchange)}`)
  exporter.add(scratch)
  for (const call of [...primaryCalls(exchange), ...trace.calls]) {
    writeCall(trace, call)
    exporter.add(scratch)
  }
}

/** Calls to the backend. Requests without retries have their call in their timings; MCP records its calls itself. */
function primaryCalls(exchange: Exchange): ClientSpan[] {
  if (protocolOf(exchange) === 'mcp') return []
  const what = { kind: 'Primary', subtype: primarySubtype[protocolOf(exchange)] }
  const attempts = attemptsOf(exchange)
  if (attempts.length > 0) return attempts.map((attempt) => ({ ...what, ...attempt }))
  return exchange.upstreamStartedAtMs === 0 ? [] : [{ ...what, ...onlyAttempt(exchange) }]
}

function onlyAttempt(exchange: Exchange): Attempt {
  const { upstreamStartedAtMs, responseHeadAtMs, finishedAtMs, request, endpoint, response, error } = exchange
  const isAnswered = responseHeadAtMs > 0
  return {
    startedAtMs: upstreamStartedAtMs,
    endedAtMs: isAnswered ? responseHeadAtMs : finishedAtMs,
    method: request.method,
    host: request.authority,
    path: request.target,
    endpoint,
    status: isAnswered ? response?.status : undefined,
    error: isAnswered ? undefined : error,
  }
}

function writeCall(trace: ActiveTrace, call: ClientSpan): void {
  scratch.clear()
  const sink = new AttributeSink(scratch, ATTRIBUTE)
  sink.plain('proxy.outbound.kind', call.kind)
  sink.plain('proxy.outbound.subtype', call.subtype)
  if (call.endpoint !== undefined) sink.foreign('endpoint', call.endpoint)
  if (call.method !== undefined) sink.foreign('http.method', call.method)
  if (call.host !== undefined && call.host !== '') sink.foreign('http.host', call.host)
  if (call.path !== undefined) sink.foreign('http.path', call.path)
  if (call.status !== undefined) sink.plain('http.status', call.status)
  for (const [name, value] of Object.entries(call.fields ?? {})) if (value !== undefined) sink.foreign(name, value)
  writeSpan(trace.traceId, randomId(8), trace.spanId, trace.flags, call.name ?? call.subtype, CLIENT, call.startedAtMs, call.endedAtMs)
  if (call.error !== undefined || (call.status ?? 0) >= 400) writeError(call.error?.message ?? `status ${call.status}`)
}

/** Writes all fields but attributes and status (opentelemetry.proto.trace.v1.Span). Their order does not matter. */
function writeSpan(
  traceId: string,
  spanId: string,
  parentId: string | undefined,
  flags: number,
  name: string,
  kind: number,
  startedAtMs: number,
  endedAtMs: number,
): void {
  scratch.hexField(0x0a, traceId)
  scratch.hexField(0x12, spanId)
  if (parentId !== undefined) scratch.hexField(0x22, parentId)
  scratch.stringField(0x2a, name)
  scratch.varintField(0x30, kind)
  scratch.nanosField(0x39, toEpochMs(startedAtMs))
  scratch.nanosField(0x41, toEpochMs(Math.max(startedAtMs, endedAtMs)))
  scratch.fixed32Field(0x85, flags)
}

function writeError(text: string): void {
  statusScratch.clear()
  statusScratch.stringField(0x12, redactText(text))
  statusScratch.varintField(0x18, ERROR)
  scratch.messageField(0x7a, statusScratch)
}

/** MCP method, gRPC method, or the path of the route's match: clients cannot invent these names (traffic.md §11). */
function nameOf(exchange: Exchange): string {
  const mcp = logFieldOf(exchange, 'mcp.method.name')
  if (mcp !== undefined) return String(mcp)
  const { pathMatch, receivedTarget, receivedMethod, labels, request } = exchange
  if (labels?.kind === 'GRPCRoute' || isGrpcRequest(request)) return receivedTarget.slice(1).split('?', 1)[0] ?? ''
  if (pathMatch === undefined) return 'unknown'
  const method = methods.has(receivedMethod) ? receivedMethod : 'HTTP'
  if (pathMatch.type !== 'PathPrefix') return `${method} ${pathMatch.value}`
  return `${method} ${pathMatch.value === '/' ? '' : pathMatch.value}/*`
}
