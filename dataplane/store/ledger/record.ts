import { evalHost } from '#api/cel/index.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { apiKeyNames } from '../../request/exchange/key-names.ts'
import type { Slot } from '../../request/exchange/slot.ts'
import { variables } from '../../request/exchange/variables.ts'
import { compileExpression } from '../../request/expression/program.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import { toEpochMs } from '../../runtime/time.ts'
import { logFields } from '../../observe/telemetry/access-log/fields.ts'
import { guardOutcome, protocolOf, reasonOf, statusOf } from '../../observe/telemetry/outcome.ts'
import type { LedgerEntry } from './batch.ts'
import { textOf, type BatchLabels } from './labels.ts'
import type { LedgerSettings } from './settings.ts'

/** Writes a finished request to `entry`, and adds its labels to those of the batch. Returns false if the request is not recorded. */
type Describe = (exchange: Exchange, labels: BatchLabels, entry: LedgerEntry) => boolean

export function createDescribe(settings: LedgerSettings, random: () => number = Math.random): Describe {
  const { httpSampling } = settings
  const owners: Owners = { user: createOwner(settings.user), team: createOwner(settings.team) }
  return (exchange, labels, entry) => {
    const protocol = protocolOf(exchange)
    const isSampled = protocol !== 'llm' && protocol !== 'mcp'
    if (isSampled && (httpSampling === 0 || (httpSampling < 1 && random() >= httpSampling))) return false
    entry[0] = labels.indexOf(labelsOf(exchange, protocol, owners))
    writeValues(exchange, isSampled ? 1 / httpSampling : 1, entry)
    return true
  }
}

/** Reads who a request is charged to. */
type Owner = (exchange: Exchange) => unknown
interface Owners {
  readonly user: Owner
  readonly team: Owner
}

/** Members, at most in one `coalesce`: `coalesce(jwt.sub, basicAuth.username)`. */
const MEMBERS = /^(?:coalesce\()?\w+(?:\.\w+)+(?:, *\w+(?:\.\w+)+)*\)?$/
/** Variables that only policies set. */
const credentials: Readonly<Record<string, Slot<unknown>>> = { jwt: variables.jwt, apiKey: variables.apiKey, basicAuth: variables.basicAuth }

/** Members of credentials are not read without any: requests of many Gateways have neither token nor key. */
function createOwner(source: string): Owner {
  const program = compileExpression(source, 'log')
  const slots = [...program.reads].filter((name) => !name.includes('.')).map((name) => credentials[name])
  const isOfCredentials = MEMBERS.test(source) && !slots.includes(undefined)
  const hasNone = (exchange: Exchange): boolean => exchange.trace === undefined && slots.every((slot) => slot?.get(exchange) === undefined)
  return (exchange) => (isOfCredentials && hasNone(exchange) ? undefined : evalHost(program, new ExchangeView(exchange)))
}

/** Values of the labels, in the order of `labelColumns`. */
function labelsOf(exchange: Exchange, protocol: string, { user, team }: Owners): unknown[] {
  const fields = logFields.get(exchange) ?? {}
  const reason = reasonOf(exchange)
  const { metadata } = variables.apiKey.get(exchange) ?? {}
  return [
    protocol,
    exchange.labels?.gateway,
    exchange.labels?.route,
    typeof metadata === 'object' && metadata !== null ? apiKeyNames.get(metadata) : undefined,
    user(exchange),
    team(exchange),
    fields['gen_ai.operation.name'] ?? fields['mcp.method.name'] ?? exchange.receivedMethod,
    fields['gen_ai.provider.name'],
    fields['gen_ai.request.model'],
    fields['gen_ai.response.model'],
    fields['mcp.target'] ?? fields['proxy.ai.shadow.model'],
    fields['gen_ai.tool.name'],
    statusOf(exchange),
    reason === 'Upstream' && exchange.cutBy !== undefined ? 'Aborted' : reason,
    guardOutcome.get(exchange),
    fields['proxy.budget.exceeded'],
  ]
}

/** Writes the values of one request, in the order of `valueColumns`. `weight`: number of requests that the entry stands for. */
function writeValues(exchange: Exchange, weight: number, entry: LedgerEntry): void {
  const fields = logFields.get(exchange) ?? {}
  const firstToken = fields['proxy.ai.time_to_first_token']
  // The index of the labels is the first.
  let at = 1
  entry[at++] = Math.round(toEpochMs(exchange.startedAtMs))
  entry[at++] = Math.max(0, Math.round(exchange.finishedAtMs - exchange.startedAtMs))
  entry[at++] = numberOf(fields['gen_ai.usage.input_tokens'])
  entry[at++] = numberOf(fields['gen_ai.usage.output_tokens'])
  entry[at++] = numberOf(fields['proxy.ai.usage.cost.total'])
  entry[at++] = numberOf(fields['gen_ai.usage.cache_read.input_tokens'])
  entry[at++] = numberOf(fields['gen_ai.usage.reasoning_tokens'])
  entry[at++] = firstToken === undefined ? null : Math.round(Number(firstToken) * 1000)
  entry[at++] = textOf(fields['trace.id'])
  entry[at++] = weight === 1 ? null : weight
}

function numberOf(value: string | number | undefined): number | null {
  const number = value === undefined ? Number.NaN : Number(value)
  return Number.isFinite(number) ? number : null
}
