import type { Connection, Exchange, RouteLabels } from '../exchange.ts'
import type { ProxyError } from '../error.ts'
import { describeError, quote, quoteIfNeeded, type LogFormat, type Logging } from './log.ts'
import { protocolOf, reasonOf, statusOf } from './outcome.ts'
import { redactText } from './redact.ts'
import { formatTime, toEpochMs } from './time.ts'

/** What the log says about a TCP connection that was relayed as bytes. */
export interface TcpSession {
  readonly connection: Connection
  readonly labels: Partial<RouteLabels> | undefined
  readonly endpoint: string | undefined
  readonly error: ProxyError | undefined
  /** Milliseconds of `performance.now()`. */
  /** Where TLS passes through, nothing else knows it. */
  readonly sni?: string | undefined
  readonly startedAtMs: number
  readonly finishedAtMs: number
}

export interface AccessLog {
  /** Writes the line of a finished exchange, unless the scope `request` is off. */
  logExchange(exchange: Exchange): void
  logTcpSession(session: TcpSession): void
}

export const ACCESS_LOG_SCOPE = 'request'

/**
 * Fields that policies contribute (traffic.md §11), in the order they are written; they stand between the response's own fields
 * and `retry.attempt`. A policy adds one by `setLogField`.
 */
export const contributedFields = [
  'trace.id',
  'span.id',
  'jwt.sub',
  'protocol',
  'a2a.method',
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
  'gen_ai.usage.image.input_tokens',
  'gen_ai.usage.image.output_tokens',
  'gen_ai.usage.audio.input_tokens',
  'gen_ai.usage.audio.output_tokens',
  'proxy.ai.time_to_first_token',
  'proxy.ai.time_per_output_token',
  'proxy.ai.cost.total',
  'gen_ai.request.temperature',
  'gen_ai.request.top_p',
  'gen_ai.request.max_tokens',
  'gen_ai.request.frequency_penalty',
  'gen_ai.request.presence_penalty',
  'gen_ai.request.seed',
  'gen_ai.request.encoding_formats',
  'gen_ai.embeddings.dimension.count',
] as const
/** `protocol` is not set but derived: see outcome.ts. */
export type ContributedField = Exclude<(typeof contributedFields)[number], 'protocol'>

const FIELDS_KEY = 'accessLogFields'
type FieldValues = Partial<Record<(typeof contributedFields)[number], string | number>>

/** Adds a field to the exchange's line; a later value replaces an earlier one. */
export function setLogField(exchange: Exchange, name: ContributedField, value: string | number): void {
  const fields = exchange.get(FIELDS_KEY) as FieldValues | undefined
  if (fields !== undefined) fields[name] = value
  else exchange.set(FIELDS_KEY, { [name]: value })
}

/** One syntax of lines: each function appends to the line and returns it. */
interface LineSyntax {
  start(epochMs: number): string
  /** A value of ours that needs no quotes. */
  plain(line: string, name: string, value: string | number): string
  /** A value that the client or an upstream chose. */
  foreign(line: string, name: string, value: string): string
  quoted(line: string, name: string, value: string): string
  end: string
}

const syntaxes: Readonly<Record<LogFormat, LineSyntax>> = {
  text: {
    start: (epochMs) => `${formatTime(epochMs)}\tinfo\t${ACCESS_LOG_SCOPE}`,
    plain: (line, name, value) => `${line} ${name}=${value}`,
    foreign: (line, name, value) => `${line} ${name}=${quoteIfNeeded(value)}`,
    quoted: (line, name, value) => `${line} ${name}=${quote(value)}`,
    end: '\n',
  },
  json: {
    start: (epochMs) => `{"level":"info","time":"${formatTime(epochMs)}","scope":"${ACCESS_LOG_SCOPE}"`,
    plain: (line, name, value) => (typeof value === 'number' ? `${line},"${name}":${value}` : `${line},"${name}":"${value}"`),
    foreign: (line, name, value) => `${line},"${name}":${quote(value)}`,
    quoted: (line, name, value) => `${line},"${name}":${quote(value)}`,
    end: '}\n',
  },
}

/** The default access log (traffic.md §11): one line per exchange on standard output, in the format of the process's logs. */
export function createAccessLog(logging: Logging): AccessLog {
  const { writer } = logging
  const logger = logging.logger(ACCESS_LOG_SCOPE)
  const syntax = syntaxes[logging.format]
  let requests = 0
  return {
    logExchange(exchange) {
      if (!logger.isEnabled('info')) return
      let line = exchangeLine(exchange, syntax)
      if (logger.isEnabled('debug')) {
        line = syntax.plain(line, 'connection.id', exchange.connection.id)
        line = syntax.plain(line, 'request.id', ++requests)
      }
      writer.write(line + syntax.end)
    },
    logTcpSession(session) {
      if (logger.isEnabled('info')) writer.write(tcpLine(session, syntax) + syntax.end)
    },
  }
}

function exchangeLine(exchange: Exchange, syntax: LineSyntax): string {
  const { connection, labels, request } = exchange
  let line = syntax.start(toEpochMs(exchange.finishedAtMs))
  if (labels !== undefined) line = addLabels(line, labels, syntax)
  if (exchange.endpoint !== undefined) line = syntax.foreign(line, 'endpoint', exchange.endpoint)
  line = addSource(line, connection, syntax)
  line = syntax.foreign(line, 'http.method', exchange.receivedMethod)
  if (exchange.receivedAuthority !== '') line = syntax.foreign(line, 'http.host', exchange.receivedAuthority)
  if (exchange.receivedTarget !== '') line = syntax.foreign(line, 'http.path', exchange.receivedTarget)
  line = syntax.plain(line, 'http.version', request.version)
  const status = statusOf(exchange)
  if (status !== 0) line = syntax.plain(line, 'http.status', status)
  if (exchange.grpcStatus !== undefined) line = syntax.foreign(line, 'grpc.status', exchange.grpcStatus)
  const fields = exchange.get(FIELDS_KEY) as FieldValues | undefined
  if (fields === undefined) line = syntax.plain(line, 'protocol', protocolOf(exchange))
  else line = addContributed(line, { ...fields, protocol: protocolOf(exchange) }, syntax)
  if (exchange.retryAttempt > 0) line = syntax.plain(line, 'retry.attempt', exchange.retryAttempt)
  if (exchange.error !== undefined) line = addError(line, exchange.error, syntax)
  else if (exchange.cutBy !== undefined) line = syntax.quoted(line, 'error', cutTexts[exchange.cutBy])
  const reason = reasonOf(exchange)
  if (reason !== 'Upstream') line = syntax.plain(line, 'reason', reason)
  return addDuration(line, exchange, syntax)
}

function tcpLine(session: TcpSession, syntax: LineSyntax): string {
  let line = syntax.start(toEpochMs(session.finishedAtMs))
  if (session.labels !== undefined) line = addLabels(line, session.labels, syntax)
  if (session.endpoint !== undefined) line = syntax.foreign(line, 'endpoint', session.endpoint)
  line = addSource(line, session.connection, syntax)
  const sni = session.sni ?? session.connection.tls?.sni
  if (sni !== undefined) line = syntax.foreign(line, 'tls.sni', sni)
  line = syntax.plain(line, 'protocol', 'tcp')
  if (session.error !== undefined) {
    line = addError(line, session.error, syntax)
    line = syntax.plain(line, 'reason', session.error.row.reason)
  }
  return addDuration(line, session, syntax)
}

function addLabels(line: string, labels: Partial<RouteLabels>, syntax: LineSyntax): string {
  if (labels.gateway) line = syntax.foreign(line, 'gateway', labels.gateway)
  if (labels.listener) line = syntax.foreign(line, 'listener', labels.listener)
  if (labels.rule) line = syntax.foreign(line, 'route_rule', labels.rule)
  if (labels.route) line = syntax.foreign(line, 'route', labels.route)
  return line
}

function addSource(line: string, connection: Connection, syntax: LineSyntax): string {
  const { remoteAddress, remotePort, tls } = connection
  line = syntax.plain(line, 'src.addr', remoteAddress.includes(':') ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`)
  const identity = tls?.clientCertificate?.subjectAltNames.find((name) => name.startsWith('spiffe://') || name.startsWith('URI:spiffe://'))
  return identity === undefined ? line : syntax.foreign(line, 'src.identity', identity.replace(/^URI:/, ''))
}

function addContributed(line: string, fields: FieldValues, syntax: LineSyntax): string {
  for (const name of contributedFields) {
    const value = fields[name]
    if (typeof value === 'number') line = syntax.plain(line, name, value)
    else if (value !== undefined && value !== '') line = syntax.foreign(line, name, value)
  }
  return line
}

const cutTexts = {
  client: 'client closed the connection before the end of the response',
  upstream: 'upstream closed the connection before the end of the response',
  timeout: 'response cut by a timeout',
  shutdown: 'response cut by the shutdown deadline',
} as const satisfies Record<NonNullable<Exchange['cutBy']>, string>

function addError(line: string, error: ProxyError, syntax: LineSyntax): string {
  return syntax.quoted(line, 'error', redactText(describeError(error)))
}

function addDuration(line: string, times: { startedAtMs: number; finishedAtMs: number }, syntax: LineSyntax): string {
  return syntax.plain(line, 'duration', `${Math.max(0, Math.round(times.finishedAtMs - times.startedAtMs))}ms`)
}
