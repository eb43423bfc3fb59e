import { evalHost, type Program } from '#api/cel/index.ts'
import type { AccessLog, BackendRef, FrontendHTTP, OtlpAccessLog, Tracing } from '#gen/config/types.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { MAX_BUFFER_BYTES } from '../../request/expression/buffer.ts'
import { compileExpression, parsesJson, readsRequestBody, readsResponseBody } from '../../request/expression/program.ts'
import type { BodyRecording } from '../../request/expression/record.ts'
import { ExchangeView, viewEnv } from '../../request/expression/view.ts'
import { compileAttributes } from './attributes.ts'
import type { CompiledAccessLog, CompiledTracing, GatewayTelemetry } from './gateway.ts'
import { setLogField } from './access-log/fields.ts'
import { OtlpExporter } from './otlp/exporter.ts'
import { readTraceparent, startTrace } from './trace.ts'
import type { Registry } from './metrics/registry.ts'
import type { Destination } from '../../net/upstream/destination.ts'

/** Process-wide state that compiled telemetry settings use; part of `PolicyState`. */
interface Sources {
  /** Values that outlive a config version as long as their section and inputs stay the same objects. */
  readonly kept: { get<T>(section: object, inputs: readonly unknown[], create: () => T): T }
  readonly destinations: { forPolicy(ref: BackendRef): Destination }
  readonly registry: Registry
}

/** Compiles the telemetry settings of a Gateway; undefined if no policy sets any: default log lines, no traces. */
export function compileTelemetry(
  { accessLog, tracing, http }: { readonly accessLog?: AccessLog; readonly tracing?: Tracing; readonly http?: FrontendHTTP },
  state: Sources,
  random: () => number = Math.random,
): GatewayTelemetry | undefined {
  if (accessLog === undefined && tracing === undefined) return undefined
  const compiled = { accessLog: accessLog && compileAccessLog(accessLog, state), tracing: tracing && compileTracing(tracing, state, random) }
  return { ...compiled, bodies: bodiesOf(compiled, http?.maxBufferSize) }
}

/**
 * Creates a function that returns whether a log or trace expression of a Gateway matches a predicate. Caches the result per Gateway.
 *
 * @example
 * const recordsReadText = createRecordQuery(readsText)
 * if (recordsReadText(gatewayTelemetry.get(exchange))) collectText()
 */
export function createRecordQuery(reads: (program: Program) => boolean): (telemetry: GatewayTelemetry | undefined) => boolean {
  const known = new WeakMap<GatewayTelemetry, boolean>()
  return (telemetry) => {
    if (telemetry === undefined) return false
    let isRead = known.get(telemetry)
    if (isRead === undefined) known.set(telemetry, (isRead = programsOfRecords(telemetry).some(reads)))
    return isRead
  }
}

/** All expressions that are evaluated at the end of a request. */
function programsOfRecords({ accessLog, tracing }: Pick<GatewayTelemetry, 'accessLog' | 'tracing'>): readonly Program[] {
  const added = [...(accessLog?.changes?.added ?? []), ...(tracing?.changes?.added ?? [])].map(({ program }) => program)
  return accessLog?.filter === undefined ? added : [accessLog.filter, ...added]
}

/** Bodies to keep for log and trace expressions; undefined: none. */
function bodiesOf(telemetry: Pick<GatewayTelemetry, 'accessLog' | 'tracing'>, limitBytes = MAX_BUFFER_BYTES): BodyRecording | undefined {
  const programs = programsOfRecords(telemetry)
  const [request, response] = [readsRequestBody(programs), readsResponseBody(programs)]
  return request || response ? { request, response, limitBytes, parses: parsesJson(programs) } : undefined
}

function compileAccessLog(section: AccessLog, state: Sources): CompiledAccessLog {
  const { filter, attributes, otlp } = section
  const compiled = state.kept.get(section, [], () => ({
    filter: filter === undefined ? undefined : compileExpression(filter, 'log'),
    changes: compileAttributes(attributes),
  }))
  return { ...compiled, exporter: otlp && exporterOf('logs', otlp, state, []) }
}

function compileTracing(section: Tracing, state: Sources, random: () => number): CompiledTracing {
  const { attributes, resources = [], randomSampling, clientSampling } = section
  const compiled = state.kept.get(section, [], () => ({
    changes: compileAttributes(attributes),
    randomSampling: randomSampling === undefined ? undefined : compileExpression(randomSampling, 'request'),
    clientSampling: clientSampling === undefined ? undefined : compileExpression(clientSampling, 'request'),
    resources: resources.flatMap(({ name, expression }): [string, unknown][] => {
      const value = evalHost(compileExpression(expression, 'resource'), { env: viewEnv(process.env) })
      return value === undefined || value === null ? [] : [[name, value]]
    }),
  }))
  return { ...compiled, exporter: exporterOf('traces', section, state, compiled.resources), random }
}

/** Returns the exporter of a section. It and its queue survive config changes; its destination is that of the newest config. */
function exporterOf(
  signal: 'logs' | 'traces',
  section: OtlpAccessLog | { readonly backendRef: BackendRef; readonly protocol?: 'HTTP' | 'GRPC'; readonly path?: string },
  { kept, destinations, registry }: Sources,
  resources: readonly [string, unknown][],
): OtlpExporter {
  const { backendRef, protocol = 'GRPC', path } = section
  const exporter = kept.get(backendRef, [], () => new OtlpExporter({ signal, protocol, path: path ?? `/v1/${signal}`, resources, registry }))
  exporter.destination = destinations.forPolicy(backendRef)
  return exporter
}

/** Decides whether a request gets a span, before any policy has run (traffic.md §11, Tracing). */
export function sampleTrace(exchange: Exchange, { randomSampling, clientSampling, random }: CompiledTracing): void {
  const incoming = readTraceparent(exchange)
  const program = incoming === undefined ? randomSampling : clientSampling
  const isChosen = program === undefined ? incoming !== undefined : isSampled(program.eval(new ExchangeView(exchange)), random)
  if (!isChosen) return
  const { traceId, spanId } = startTrace(exchange, incoming)
  setLogField(exchange, 'trace.id', traceId)
  setLogField(exchange, 'span.id', spanId)
}

/** Samples by a boolean or by a number, which is a probability. Other values and errors mean no. */
function isSampled(value: unknown, random: () => number): boolean {
  if (typeof value === 'boolean') return value
  const probability = typeof value === 'bigint' ? Number(value) : typeof value === 'number' ? value : 0
  return random() < probability
}
