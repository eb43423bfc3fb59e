import type { LlmRow, LlmUsage } from '#api/management/llm.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { apiKeyNames } from '../../request/exchange/key-names.ts'
import { variables } from '../../request/exchange/variables.ts'
import { logFields } from '../../observe/telemetry/access-log/fields.ts'
import { protocolOf, reasonOf, statusOf } from '../../observe/telemetry/outcome.ts'
import type { Telemetry } from '../../observe/telemetry/telemetry.ts'
import { observe, unobserve } from '../../observe/telemetry/observers.ts'

const SLOT_MS = 60_000
const SLOTS = 15
const WINDOW_MS = SLOT_MS * SLOTS
/** Rows of the window. Further ones are counted as model `other`. */
const MAX_ROWS = 500
/** Rows that failed requests may create. Clients can invent any number of models, which no response confirms. */
const MAX_UNCONFIRMED = 250
const MAX_NAME = 256

type Counts = Omit<LlmRow, 'model' | 'provider' | 'key' | 'route'>
type Names = Pick<LlmRow, 'model' | 'provider' | 'key' | 'route'>

interface Entry {
  readonly names: Names
  /** By the number of the minute. Only minutes with requests. */
  readonly slots: Map<number, Counts>
}

const zero: Counts = {
  requests: 0,
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  cost: 0,
  streams: 0,
  firstTokenSeconds: 0,
  generationSeconds: 0,
  generatedTokens: 0,
  rateLimited: 0,
  clientErrors: 0,
  serverErrors: 0,
  timeouts: 0,
  aborted: 0,
}
const countNames = Object.keys(zero) as (keyof Counts)[]

/**
 * LLM requests of a thread by model, API key and route over the last 15 minutes, in steps of a minute. Observes the telemetry from the first read
 * until 15 minutes after the last one.
 */
export class LlmUsageRecorder {
  readonly #telemetry: Pick<Telemetry, 'observe'>
  readonly #nowMs: () => number
  readonly #entries = new Map<string, Entry>()
  readonly #observer = (exchange: Exchange): void => this.#record(exchange)
  #sinceMs: number | undefined
  #readAtMs = 0
  #cleanedSlot = 0

  constructor(telemetry: Pick<Telemetry, 'observe'>, nowMs: () => number = Date.now) {
    this.#telemetry = telemetry
    this.#nowMs = nowMs
  }

  read(): LlmUsage {
    const timeMs = this.#nowMs()
    this.#stopIfIdle(timeMs)
    this.#readAtMs = timeMs
    if (this.#sinceMs === undefined) {
      this.#sinceMs = timeMs
      observe(this.#telemetry, this.#observer)
    }
    this.#removeOld(timeMs)
    const rows = [...this.#entries.values()].map(({ names, slots }) => ({ ...names, ...sumOf(slots.values()) }))
    return { timeMs, sinceMs: Math.max(this.#sinceMs, oldestSlot(timeMs) * SLOT_MS), rows }
  }

  #stopIfIdle(timeMs: number): boolean {
    if (this.#sinceMs === undefined || timeMs - this.#readAtMs <= WINDOW_MS) return false
    unobserve(this.#telemetry, this.#observer)
    this.#sinceMs = undefined
    this.#entries.clear()
    return true
  }

  #record(exchange: Exchange): void {
    const timeMs = this.#nowMs()
    if (this.#stopIfIdle(timeMs) || protocolOf(exchange) !== 'llm') return
    const counts = countsOf(exchange)
    const slots = this.#entryOf(namesOf(exchange), statusOf(exchange) < 400, timeMs).slots
    const slot = Math.floor(timeMs / SLOT_MS)
    const known = slots.get(slot)
    slots.set(slot, known === undefined ? counts : sumOf([known, counts]))
    const oldest = oldestSlot(timeMs)
    for (const each of slots.keys()) if (each < oldest) slots.delete(each)
  }

  #entryOf(names: Names, isConfirmed: boolean, timeMs: number): Entry {
    const id = JSON.stringify(Object.values(names))
    const known = this.#entries.get(id)
    if (known !== undefined) return known
    const isOther = names === OTHER
    const limit = isConfirmed ? MAX_ROWS : MAX_UNCONFIRMED
    if (!isOther && this.#entries.size >= limit) {
      // Once a minute at most, because a search for old rows reads all of them.
      if (this.#cleanedSlot !== Math.floor(timeMs / SLOT_MS)) this.#removeOld(timeMs)
      if (this.#entries.size >= limit) return this.#entryOf(OTHER, true, timeMs)
    }
    const entry: Entry = { names, slots: new Map() }
    this.#entries.set(id, entry)
    return entry
  }

  #removeOld(timeMs: number): void {
    this.#cleanedSlot = Math.floor(timeMs / SLOT_MS)
    const oldest = oldestSlot(timeMs)
    for (const [id, { slots }] of this.#entries) {
      for (const slot of slots.keys()) if (slot < oldest) slots.delete(slot)
      if (slots.size === 0) this.#entries.delete(id)
    }
  }
}

const OTHER: Names = { model: 'other', provider: 'other', key: null, route: 'other' }

/** Number of the oldest minute of the window, which includes the current one. */
const oldestSlot = (timeMs: number): number => Math.floor(timeMs / SLOT_MS) - SLOTS + 1

function sumOf(all: Iterable<Counts>): Counts {
  const sum = { ...zero }
  for (const counts of all) for (const name of countNames) sum[name] += counts[name]
  return sum
}

function namesOf(exchange: Exchange): Names {
  const fields = logFields.get(exchange) ?? {}
  const { metadata } = variables.apiKey.get(exchange) ?? {}
  return {
    model: cut(fields['gen_ai.response.model'] ?? fields['gen_ai.request.model']),
    provider: cut(fields['gen_ai.provider.name']),
    key: typeof metadata === 'object' && metadata !== null ? (apiKeyNames.get(metadata) ?? null) : null,
    route: exchange.labels?.route ?? 'unknown',
  }
}

const cut = (name: string | number | undefined): string => (name === undefined || name === '' ? 'unknown' : String(name).slice(0, MAX_NAME))

function countsOf(exchange: Exchange): Counts {
  const fields = logFields.get(exchange) ?? {}
  const first = fields['proxy.ai.time_to_first_token']
  const perToken = fields['proxy.ai.time_per_output_token']
  const outputTokens = Number(fields['gen_ai.usage.output_tokens'] ?? 0)
  return {
    ...zero,
    requests: 1,
    inputTokens: Number(fields['gen_ai.usage.input_tokens'] ?? 0),
    outputTokens,
    cachedTokens: Number(fields['gen_ai.usage.cache_read.input_tokens'] ?? 0),
    cost: Number(fields['proxy.ai.usage.cost.total'] ?? 0),
    ...(first !== undefined && { streams: 1, firstTokenSeconds: Number(first) }),
    ...(perToken !== undefined && { generationSeconds: Number(perToken) * outputTokens, generatedTokens: outputTokens }),
    ...errorOf(exchange),
  }
}

function errorOf(exchange: Exchange): Partial<Counts> {
  const status = statusOf(exchange)
  if (reasonOf(exchange) === 'Timeout') return { timeouts: 1 }
  if (status === 429) return { rateLimited: 1 }
  if (status >= 500) return { serverErrors: 1 }
  if (status >= 400) return { clientErrors: 1 }
  return status === 0 || exchange.cutBy !== undefined || exchange.error !== undefined ? { aborted: 1 } : {}
}

const recorders = new WeakMap<Telemetry, LlmUsageRecorder>()

/** Reads the LLM numbers of this thread. */
export function readLlmUsage(telemetry: Telemetry): LlmUsage {
  let recorder = recorders.get(telemetry)
  if (recorder === undefined) recorders.set(telemetry, (recorder = new LlmUsageRecorder(telemetry)))
  return recorder.read()
}
