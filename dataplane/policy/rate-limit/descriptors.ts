import type { MessageInitShape } from '@bufbuild/protobuf'
import { CelError, evalString, isAbsence, type Program } from '#api/cel/index.ts'
import type { GlobalRateLimit } from '#gen/config/types.ts'
import type { RateLimitDescriptorSchema } from '#gen/proto/envoy/extensions/common/ratelimit/v3/ratelimit_pb.js'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { readsA2a } from '../../request/expression/a2a.ts'
import { compileExpression, needsRequestBody, parsesJson } from '../../request/expression/program.ts'
import type { McpStage } from '../../request/exchange/mcp-limits.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import { stagesOf } from './mcp.ts'

/** Identifies a counter of the service. */
export type Descriptor = MessageInitShape<typeof RateLimitDescriptorSchema>

/** Compiled descriptors of a global rate limit. */
export interface CompiledDescriptors {
  /** Descriptors that count requests and descriptors that count tokens. */
  readonly requests: readonly Entries[]
  readonly tokens: readonly Entries[]
  /** Descriptors that count requests to MCP backends. */
  readonly mcp: readonly McpDescriptor[]
  readonly readsBody: boolean
  readonly checksA2a: boolean
  readonly parses: boolean
}

/** A descriptor with an entry that reads `mcp`. */
export interface McpDescriptor {
  readonly stages: readonly McpStage[]
  readonly entries: Entries
}

type Entries = readonly { readonly name: string; readonly program: Program }[]

/** Compiles the expressions of descriptors. */
export function compileDescriptors({ descriptors }: GlobalRateLimit): CompiledDescriptors {
  const compiled = descriptors.map(({ entries, unit = 'Requests' }) => ({
    unit,
    entries: entries.map(({ name, expression }) => ({ name, program: compileExpression(expression, 'request') })),
  }))
  const withUnit = (wanted: string): Entries[] => compiled.filter(({ unit }) => unit === wanted).map(({ entries }) => entries)
  const requests = withUnit('Requests').map((entries) => ({ entries, stages: stagesOf(entries.map(({ program }) => program)) }))
  const programs = compiled.flatMap(({ entries }) => entries.map(({ program }) => program))
  return {
    requests: requests.filter(({ stages }) => stages.length === 0).map(({ entries }) => entries),
    mcp: requests.filter(({ stages }) => stages.length > 0),
    tokens: withUnit('Tokens'),
    readsBody: needsRequestBody(programs),
    checksA2a: readsA2a(programs),
    parses: parsesJson(programs),
  }
}

/**
 * The descriptors of a request. A descriptor with an entry that is absent is left out (traffic.md §8.9). Throws a ProxyError RATE_LIMIT_INPUT if an
 * entry fails otherwise: what a client sends cannot evade the limit.
 */
export function describeRequest(exchange: Exchange, compiled: readonly Entries[]): Descriptor[] {
  if (compiled.length === 0) return []
  const view = new ExchangeView(exchange)
  return compiled.flatMap((entries) => {
    const values = entries.map(({ name, program }) => ({ key: name, value: valueOf(program, view) }))
    return values.every((entry): entry is { key: string; value: string } => entry.value !== undefined) ? [{ entries: values }] : []
  })
}

function valueOf(program: Program, view: ExchangeView): string | undefined {
  const value = evalString(program, view)
  if (value !== undefined) return value
  const failure = program.eval(view)
  if (failure instanceof CelError && !isAbsence(failure)) throw new ProxyError('RATE_LIMIT_INPUT')
  return undefined
}
