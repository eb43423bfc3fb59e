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

/** Writes the row of a finished request to `row`, and adds its labels to those of the batch. Returns false if the request is not recorded. */
type Describe = (exchange: Exchange, labels: BatchLabels, row: LedgerEntry) => boolean

export function createDescribe(settings: LedgerSettings, random: () => number = Math.random): Describe {
  const { httpSampling } = settings
  const [user, team] = [compileExpression(settings.user, 'log'), compileExpression(settings.team, 'log')]
  return (exchange, labels, row) => {
    const protocol = protocolOf(exchange)
    const isSampled = protocol !== 'llm' && protocol !== 'mcp'
    if (isSampled && (httpSampling === 0 || (httpSampling < 1 && random() >= httpSampling))) return false
    row[0] = labels.indexOf(labelsOf(exchange, protocol, { user, team }))
    writeValues(exchange, isSampled ? 1 / httpSampling : 1, row)
    return true
  }
}

/** Who a request is charged to. */
interface Owners {
  readonly user: Program
  readonly team: Program
}

/** Values of the labels, in the order of `labelColumns`. */
function labelsOf(exchange: Exchange, protocol: string, { user, team }: Owners): unknown[] {
  const fields = logFields.get(exchange) ?? {}
  const view = new ExchangeView(exchange)
  const reason = reasonOf(exchange)
  const { metadata } = variables.apiKey.get(exchange) ?? {}
  return [
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
  ]
}

/** Writes the values of one request, in the order of `valueColumns`. `weight`: number of requests that the row stands for. */
function writeValues(exchange: Exchange, weight: number, row: LedgerEntry): void {
  const fields = logFields.get(exchange) ?? {}
  const firstToken = fields['proxy.ai.time_to_first_token']
  const bodies = capturedBodies.get(exchange)
  // The index of the labels is the first.
  let at = 1
  row[at++] = Math.round(toEpochMs(exchange.startedAtMs))
  row[at++] = numberOf(fields['gen_ai.usage.input_tokens'])
  row[at++] = numberOf(fields['gen_ai.usage.output_tokens'])
  row[at++] = numberOf(fields['gen_ai.usage.cache_read.input_tokens'])
  row[at++] = numberOf(fields['gen_ai.usage.reasoning_tokens'])
  row[at++] = numberOf(fields['proxy.ai.usage.cost.total'])
  row[at++] = Math.max(0, Math.round(exchange.finishedAtMs - exchange.startedAtMs))
  row[at++] = firstToken === undefined ? null : Math.round(Number(firstToken) * 1000)
  row[at++] = textOf(fields['trace.id'])
  row[at++] = weight
  row[at++] = bodies?.request ?? null
  row[at++] = bodies?.response ?? null
}

function numberOf(value: string | number | undefined): number | null {
  const number = value === undefined ? Number.NaN : Number(value)
  return Number.isFinite(number) ? number : null
}
