import { evalHost, type Program } from '#api/cel/index.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { capturedBodies } from '../exchange/captured-bodies.ts'
import { apiKeyNames } from '../exchange/key-names.ts'
import { variables } from '../exchange/variables.ts'
import { compileExpression } from '../expression/program.ts'
import { ExchangeView } from '../expression/view.ts'
import { toEpochMs } from '../runtime/time.ts'
import { logFields } from '../telemetry/access-log/fields.ts'
import { guardOutcome, protocolOf, reasonOf, statusOf } from '../telemetry/outcome.ts'
import type { LedgerRow } from './columns.ts'
import type { LedgerSettings } from './settings.ts'

/** Characters of a text. Longer ones are cut: clients choose some of them. */
const MAX_TEXT = 256

/** Creates the function that returns the row of a finished request; undefined: the request is not recorded. */
export function createDescribe(settings: LedgerSettings, random: () => number = Math.random): (exchange: Exchange) => LedgerRow | undefined {
  const { httpSampling } = settings
  const [user, team] = [compileExpression(settings.user, 'log'), compileExpression(settings.team, 'log')]
  return (exchange) => {
    const protocol = protocolOf(exchange)
    const isSampled = protocol !== 'llm' && protocol !== 'mcp'
    if (isSampled && (httpSampling === 0 || (httpSampling < 1 && random() >= httpSampling))) return undefined
    return describeRequest(exchange, protocol, { user, team, weight: isSampled ? 1 / httpSampling : 1 })
  }
}

interface Described {
  readonly user: Program
  readonly team: Program
  /** Number of requests that the row stands for. */
  readonly weight: number
}

function describeRequest(exchange: Exchange, protocol: string, { user, team, weight }: Described): LedgerRow {
  const fields = logFields.get(exchange) ?? {}
  const view = new ExchangeView(exchange)
  const reason = reasonOf(exchange)
  const firstToken = fields['proxy.ai.time_to_first_token']
  const bodies = capturedBodies.get(exchange)
  const { metadata } = variables.apiKey.get(exchange) ?? {}
  return [
    Math.round(toEpochMs(exchange.startedAtMs)),
    protocol,
    textOf(exchange.labels?.gateway),
    textOf(exchange.labels?.route),
    textOf(typeof metadata === 'object' && metadata !== null ? apiKeyNames.get(metadata) : undefined),
    textOf(evalHost(user, view)),
    textOf(evalHost(team, view)),
    textOf(fields['gen_ai.operation.name'] ?? fields['mcp.method.name'] ?? exchange.receivedMethod),
    textOf(fields['gen_ai.provider.name']),
    textOf(fields['gen_ai.request.model']),
    textOf(fields['gen_ai.response.model']),
    textOf(fields['mcp.target']),
    textOf(fields['gen_ai.tool.name']),
    statusOf(exchange),
    reason === 'Upstream' && exchange.cutBy !== undefined ? 'Aborted' : reason,
    guardOutcome.get(exchange) ?? null,
    textOf(fields['proxy.budget.exceeded']),
    numberOf(fields['gen_ai.usage.input_tokens']),
    numberOf(fields['gen_ai.usage.output_tokens']),
    numberOf(fields['gen_ai.usage.cache_read.input_tokens']),
    numberOf(fields['gen_ai.usage.reasoning_tokens']),
    numberOf(fields['proxy.ai.usage.cost.total']),
    Math.max(0, Math.round(exchange.finishedAtMs - exchange.startedAtMs)),
    firstToken === undefined ? null : Math.round(Number(firstToken) * 1000),
    textOf(fields['trace.id']),
    weight,
    bodies?.request ?? null,
    bodies?.response ?? null,
  ]
}

function textOf(value: unknown): string | null {
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  // A half of a surrogate pair at the cut would not be valid UTF-8.
  return typeof value === 'string' && value !== '' ? value.slice(0, MAX_TEXT).toWellFormed() : null
}

function numberOf(value: string | number | undefined): number | null {
  const number = value === undefined ? Number.NaN : Number(value)
  return Number.isFinite(number) ? number : null
}
