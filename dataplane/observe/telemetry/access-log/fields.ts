import { authorityOf } from '../../../http/message.ts'
import type { Connection, Exchange, RouteLabels } from '../../../request/exchange/exchange.ts'
import { defineSlot } from '../../../request/exchange/slot.ts'
import type { ProxyError } from '../../../request/exchange/error.ts'
import { describeError } from '../log.ts'
import type { GatewayTelemetry } from '../gateway.ts'
import { protocolOf, reasonOf, statusOf } from '../outcome.ts'
import type { FieldSink } from '../field-sink.ts'
import { redactText } from '../redact.ts'

/** A finished TCP relay, for the access log. */
export interface TcpSession {
  readonly connection: Connection
  readonly labels: Partial<RouteLabels> | undefined
  readonly endpoint: string | undefined
  readonly error: ProxyError | undefined
  /** Server name with TLS passthrough, where `connection.tls` is undefined. */
  readonly sni?: string | undefined
  /** Milliseconds of `performance.now()`. */
  readonly startedAtMs: number
  readonly finishedAtMs: number
  /** Telemetry settings of its Gateway. */
  readonly telemetry?: GatewayTelemetry | undefined
}

/**
 * Fields set by policies and services with `setLogField` (traffic.md §11), in the order in which they are written: after the fields
 * of the response and before `retry.attempt`.
 */
const contributedFields = [
  'trace.id',
  'span.id',
  'jwt.sub',
  'protocol',
  'a2a.method',
  'a2a.response.outcome',
  'a2a.response.error_code',
  'a2a.result.kind',
  'a2a.task.state',
  'a2a.context.id',
  'mcp.method.name',
  'mcp.target',
  'mcp.resource.type',
  'mcp.resource.uri',
  'gen_ai.tool.name',
  'gen_ai.prompt.name',
  'mcp.session.id',
  'mcp.error.code',
  'mcp.error.message',
  'inferencepool.selected_endpoint',
  'gen_ai.operation.name',
  'gen_ai.provider.name',
  'gen_ai.request.model',
  'gen_ai.response.model',
  'gen_ai.usage.input_tokens',
  'gen_ai.usage.output_tokens',
  'gen_ai.usage.cache_creation.input_tokens',
  'gen_ai.usage.cache_read.input_tokens',
  'gen_ai.usage.reasoning_tokens',
  'gen_ai.usage.input_image_tokens',
  'gen_ai.usage.output_image_tokens',
  'gen_ai.usage.input_audio_tokens',
  'gen_ai.usage.output_audio_tokens',
  'gen_ai.usage.searches',
  'gen_ai.usage.images',
  'gen_ai.usage.seconds',
  'gen_ai.usage.characters',
  'proxy.ai.time_to_first_token',
  'proxy.ai.time_per_output_token',
  'proxy.ai.usage.cost.total',
  'proxy.cache',
  'proxy.ai.omitted',
  'proxy.ai.failed',
  'proxy.ai.model.requested',
  'proxy.ai.shadow.model',
  'proxy.ai.model.target',
  'proxy.ai.model.skipped',
  'proxy.ai.cache',
  'proxy.ai.cache.saved_cost',
  'proxy.budget.exceeded',
  'proxy.fault',
  'gen_ai.request.temperature',
  'gen_ai.request.top_p',
  'gen_ai.request.max_tokens',
  'gen_ai.request.frequency_penalty',
  'gen_ai.request.presence_penalty',
  'gen_ai.request.seed',
  'gen_ai.request.encoding_formats',
  'gen_ai.embeddings.dimension.count',
] as const
/** Without `protocol`, which is derived: see outcome.ts. */
export type ContributedField = Exclude<(typeof contributedFields)[number], 'protocol'>

type FieldValues = Partial<Record<ContributedField, string | number>>
/** Fields that policies and services have set on a request. */
export const logFields = defineSlot<FieldValues>('accessLogFields')

/** Adds a field to the exchange's records; a later value replaces an earlier one. */
export function setLogField(exchange: Exchange, name: ContributedField, value: string | number): void {
  let fields = logFields.get(exchange)
  if (fields === undefined) logFields.set(exchange, (fields = {}))
  fields[name] = value
}

/** Removes a field that an earlier attempt has set. */
export function clearLogField(exchange: Exchange, name: ContributedField): void {
  const fields = logFields.get(exchange)
  if (fields?.[name] !== undefined) delete fields[name]
}

export function logFieldOf(exchange: Exchange, name: ContributedField): string | number | undefined {
  return logFields.get(exchange)?.[name]
}

/** Writes the fields of a finished exchange. */
export function writeExchangeFields(exchange: Exchange, sink: FieldSink): void {
  const { connection, labels, request } = exchange
  if (labels !== undefined) writeLabels(labels, sink)
  if (exchange.endpoint !== undefined) sink.foreign('endpoint', exchange.endpoint)
  writeSource(connection, sink)
  sink.foreign('http.method', exchange.receivedMethod)
  if (exchange.receivedAuthority !== '') sink.foreign('http.host', exchange.receivedAuthority)
  if (exchange.receivedTarget !== '') sink.foreign('http.path', exchange.receivedTarget)
  sink.plain('http.version', request.version)
  const status = statusOf(exchange)
  if (status !== 0) sink.plain('http.status', status)
  if (exchange.grpcStatus !== undefined) sink.foreign('grpc.status', exchange.grpcStatus)
  if (exchange.requestId !== undefined) sink.foreign('request.id', exchange.requestId)
  const fields = logFields.get(exchange)
  if (fields === undefined) sink.plain('protocol', protocolOf(exchange))
  else writeContributed(fields, protocolOf(exchange), sink)
  if (exchange.retryAttempt > 0) sink.plain('retry.attempt', exchange.retryAttempt)
  const error = errorTextOf(exchange)
  if (error !== undefined) sink.quoted('error', error)
  const reason = reasonOf(exchange)
  if (reason !== 'Upstream') sink.plain('reason', reason)
  writeDuration(exchange, sink)
}

export function writeTcpFields(session: TcpSession, sink: FieldSink): void {
  if (session.labels !== undefined) writeLabels(session.labels, sink)
  if (session.endpoint !== undefined) sink.foreign('endpoint', session.endpoint)
  writeSource(session.connection, sink)
  const sni = session.sni ?? session.connection.tls?.sni
  if (sni !== undefined) sink.foreign('tls.sni', sni)
  sink.plain('protocol', 'tcp')
  if (session.error !== undefined) {
    sink.quoted('error', redactText(describeError(session.error)))
    sink.plain('reason', session.error.row.reason)
  }
  writeDuration(session, sink)
}

/** Text of the error without credentials; undefined if there was none. */
export function errorTextOf({ error, cutBy }: Exchange): string | undefined {
  if (error !== undefined) return redactText(describeError(error))
  return cutBy === undefined ? undefined : cutTexts[cutBy]
}

function writeLabels(labels: Partial<RouteLabels>, sink: FieldSink): void {
  if (labels.gateway) sink.foreign('gateway', labels.gateway)
  if (labels.listener) sink.foreign('listener', labels.listener)
  if (labels.rule) sink.foreign('route_rule', labels.rule)
  if (labels.route) sink.foreign('route', labels.route)
}

function writeSource({ remoteAddress, remotePort, tls }: Connection, sink: FieldSink): void {
  sink.plain('src.addr', remotePort === 0 ? remoteAddress : authorityOf(remoteAddress, remotePort))
  const identity = tls?.clientCertificate?.subjectAltNames.find((name) => name.startsWith('spiffe://') || name.startsWith('URI:spiffe://'))
  if (identity !== undefined) sink.foreign('src.identity', identity.replace(/^URI:/, ''))
}

function writeContributed(fields: FieldValues, protocol: string, sink: FieldSink): void {
  for (const name of contributedFields) {
    const value = name === 'protocol' ? protocol : fields[name]
    if (typeof value === 'number') sink.plain(name, value)
    else if (value !== undefined && value !== '') sink.foreign(name, value)
  }
}

const cutTexts = {
  client: 'client closed the connection before the end of the response',
  upstream: 'upstream closed the connection before the end of the response',
  timeout: 'response cut by a timeout',
  shutdown: 'response cut by the shutdown deadline',
} as const satisfies Record<NonNullable<Exchange['cutBy']>, string>

function writeDuration(times: { startedAtMs: number; finishedAtMs: number }, sink: FieldSink): void {
  sink.plain('duration', `${Math.max(0, Math.round(times.finishedAtMs - times.startedAtMs))}ms`)
}
