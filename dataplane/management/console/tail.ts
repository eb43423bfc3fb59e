import { randomUUID } from 'node:crypto'
import { evalBool, type Program } from '#api/cel/index.ts'
import type { RequestBatch, RequestRecord } from '#api/management/requests.ts'
import { REDACTED } from '#api/names.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { compileExpression } from '../../request/expression/program.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import type { HeaderList } from '../../http/headers.ts'
import { authorityOf } from '../../http/message.ts'
import { toEpochMs } from '../../runtime/time.ts'
import { errorTextOf, logFields } from '../../observe/telemetry/access-log/fields.ts'
import { protocolOf, reasonOf, statusOf } from '../../observe/telemetry/outcome.ts'
import { isSensitiveHeader, redactText, redactValue } from '../../observe/telemetry/redact.ts'
import type { Telemetry } from '../../observe/telemetry/telemetry.ts'
import { observe, unobserve } from '../../observe/telemetry/observers.ts'

/** Returns the requests of a tail since the last call with its id. The first call starts the tail; it ends some seconds after the last one. */
export interface TailCall {
  readonly tail: string
  readonly filter: string | undefined
  /** Requests to return at most. */
  readonly limit: number
}

/** Tails open at the same time. */
const MAX_TAILS = 16
/** A tail that is not read for longer ends. */
const IDLE_MS = 5000
/** Filters evaluated between two reads. */
const MAX_CHECKED = 2000
const MAX_HEADERS = 100
const MAX_TEXT = 4096
/** Candidates of a batch for each place in it, if there are as many requests as before. Each that is kept costs a record, also one that is replaced. */
const CANDIDATES = 2

interface Tail {
  readonly filter: Program | undefined
  limit: number
  records: RequestRecord[]
  /** Finished requests since the last read. */
  seen: number
  checked: number
  matched: number
  /** Share of the requests that are candidates for the batch, from the number of requests of the last one. */
  share: number
  /** Candidates since the last read. */
  candidates: number
  readAtMs: number
}

/** Records finished requests for live views. Observes the telemetry only while a tail is open. */
export class TailRecorder {
  readonly #telemetry: Pick<Telemetry, 'observe'>
  readonly #nowMs: () => number
  readonly #random: () => number
  readonly #tails = new Map<string, Tail>()
  readonly #prefix = randomUUID().slice(0, 8)
  #count = 0
  readonly #observer = (exchange: Exchange): void => this.record(exchange)
  #timer: NodeJS.Timeout | undefined

  constructor(telemetry: Pick<Telemetry, 'observe'>, nowMs: () => number = () => performance.now(), random: () => number = Math.random) {
    this.#telemetry = telemetry
    this.#nowMs = nowMs
    this.#random = random
  }

  /** Returns the requests since the last call. Throws a RangeError if too many tails are open. */
  read({ tail: id, filter, limit }: TailCall): RequestBatch {
    let tail = this.#tails.get(id)
    if (tail === undefined) {
      this.removeIdle()
      if (this.#tails.size >= MAX_TAILS) throw new RangeError(`${MAX_TAILS} tails are open already: close one of them`)
      const program = filter === undefined || filter === '' ? undefined : compileExpression(filter, 'log')
      tail = { filter: program, limit, records: [], seen: 0, checked: 0, matched: 0, share: 1, candidates: 0, readAtMs: 0 }
      this.#tails.set(id, tail)
      observe(this.#telemetry, this.#observer)
      this.#timer ??= setInterval(() => this.removeIdle(), IDLE_MS).unref()
    }
    const batch = { records: tail.records.toSorted((a, b) => a.timeMs - b.timeMs), seen: tail.seen, skipped: skippedOf(tail) }
    const share = Math.min(1, (CANDIDATES * limit) / Math.max(1, tail.matched))
    Object.assign(tail, { limit, records: [], seen: 0, checked: 0, matched: 0, share, candidates: 0, readAtMs: this.#nowMs() })
    return batch
  }

  /** Ends the tails that are not read any more. */
  removeIdle(): void {
    for (const [id, { readAtMs }] of this.#tails) if (this.#nowMs() - readAtMs > IDLE_MS) this.#tails.delete(id)
    if (this.#tails.size > 0) return
    unobserve(this.#telemetry, this.#observer)
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  record(exchange: Exchange): void {
    for (const tail of this.#tails.values()) {
      tail.seen++
      if (tail.filter !== undefined) {
        if (tail.checked >= MAX_CHECKED) continue
        tail.checked++
        if (!evalBool(tail.filter, new ExchangeView(exchange))) continue
      }
      tail.matched++
      // Under load, every request has the same chance to be kept.
      if (tail.share < 1 && this.#random() >= tail.share) continue
      tail.candidates++
      const place = tail.records.length < tail.limit ? tail.records.length : Math.floor(this.#random() * tail.candidates)
      if (place < tail.limit) tail.records[place] = toRecord(exchange, `${this.#prefix}-${++this.#count}`)
    }
  }
}

const skippedOf = ({ filter, seen, checked, matched, records }: Tail): number => (filter === undefined ? 0 : seen - checked) + matched - records.length

const recorders = new WeakMap<Telemetry, TailRecorder>()

/** Reads a tail of this thread; see `TailCall`. */
export function readTail(telemetry: Telemetry, call: TailCall): RequestBatch {
  let recorder = recorders.get(telemetry)
  if (recorder === undefined) recorders.set(telemetry, (recorder = new TailRecorder(telemetry)))
  return recorder.read(call)
}

function toRecord(exchange: Exchange, id: string): RequestRecord {
  const { connection, labels, request, response, startedAtMs } = exchange
  const since = (atMs: number): number | null => (atMs === 0 ? null : atMs - startedAtMs)
  return {
    id,
    timeMs: toEpochMs(startedAtMs),
    method: cut(exchange.receivedMethod),
    host: cut(redactValue(exchange.receivedAuthority)),
    path: cut(redactText(exchange.receivedTarget)),
    version: request.version,
    status: statusOf(exchange),
    protocol: protocolOf(exchange),
    durationMs: exchange.finishedAtMs - startedAtMs,
    gateway: labels?.gateway ?? null,
    listener: labels?.listener ?? null,
    route: labels?.route ?? null,
    rule: labels?.rule ?? null,
    backend: exchange.backend ?? null,
    endpoint: exchange.endpoint ?? null,
    client: authorityOf(connection.remoteAddress, connection.remotePort),
    reason: reasonOf(exchange),
    error: errorTextOf(exchange) ?? null,
    retries: exchange.retryAttempt,
    requestBytes: exchange.requestBytes,
    responseBytes: exchange.responseBytes,
    timings: { upstreamMs: since(exchange.upstreamStartedAtMs), responseHeadMs: since(exchange.responseHeadAtMs), answeredMs: since(exchange.answeredAtMs) },
    requestHeaders: listHeaders(request.headers),
    responseHeaders: response === undefined ? [] : listHeaders(response.headers),
    fields: redactFields(logFields.get(exchange) ?? {}),
    pod: null,
  }
}

const redactFields = (fields: RequestRecord['fields']): RequestRecord['fields'] =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? redactValue(value) : value]))

/** Header fields without credentials, at most `MAX_HEADERS`. */
function listHeaders({ raw }: HeaderList): [string, string][] {
  const list: [string, string][] = []
  for (let i = 0; i < raw.length && list.length < MAX_HEADERS; i += 2) {
    const [name = '', value = ''] = [raw[i], raw[i + 1]]
    list.push([cut(name), isSensitiveHeader(name) ? REDACTED : cut(redactText(value))])
  }
  return list
}

const cut = (text: string): string => (text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`)
