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
import type { LedgerEntry } from './batch.ts'
import { textOf, type BatchLabels } from './labels.ts'
import type { LedgerSettings } from './settings.ts'

/** Returns the row of a finished request, and adds its labels to those of the batch; undefined: the request is not recorded. */
type Describe = (exchange: Exchange, labels: BatchLabels) => LedgerEntry | undefined

export function createDescribe(settings: LedgerSettings, random: () => number = Math.random): Describe {
  const { httpSampling } = settings
  const [user, team] = [compileExpression(settings.user, 'log'), compileExpression(settings.team, 'log')]
  return (exchange, labels) => {
    const protocol = protocolOf(exchange)
    const isSampled = protocol !== 'llm' && protocol !== 'mcp'
    if (isSampled && (httpSampling === 0 || (httpSampling < 1 && random() >= httpSampling))) return undefined
    return describeRequest(exchange, protocol, { user, team, weight: isSampled ? 1 / httpSampling : 1, labels })
  }
}

interface Described {
  readonly user: Program
  readonly team: Program
  /** Number of requests that the row stands for. */
  readonly weight: number
  readonly labels: BatchLabels
}

function describeRequest(exchange: Exchange, protocol: string, { user, team, weight, labels }: Described): LedgerEntry {
  const fields = logFields.get(exchange) ?? {}
  const view = new ExchangeView(exchange)
  const reason = reasonOf(exchange)
  const firstToken = fields['proxy.ai.time_to_first_token']
  const bodies = capturedBodies.get(exchange)
  const { metadata } = variables.apiKey.get(exchange) ?? {}
  const index = labels.indexOf([
    protocol,
    exchange.labels?.gateway,
    exchange.labels?.route,
    typeof metadata === 'object' && metadata !== null ? apiKeyNames.get(metadata) : undefined,
    evalHost(user, view),
    evalHost(team, view),
    fields['gen_ai.operation.name'] ?? fields['mcp.method.name'] ?? exchange.receivedMethod,
    fields['gen_ai.provider.name'],
    fields['gen_ai.request.model'],
    fields['gen_ai.response.model'],
    fields['mcp.target'],
    fields['gen_ai.tool.name'],
    statusOf(exchange),
    reason === 'Upstream' && exchange.cutBy !== undefined ? 'Aborted' : reason,
    guardOutcome.get(exchange),
    fields['proxy.budget.exceeded'],
  ])
  return [
    index,
    Math.round(toEpochMs(exchange.startedAtMs)),
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

function numberOf(value: string | number | undefined): number | null {
  const number = value === undefined ? Number.NaN : Number(value)
  return Number.isFinite(number) ? number : null
}
