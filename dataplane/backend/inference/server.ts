import { CLOCK_OFFSET_MS, type SharedCell } from '../../runtime/shared-cells.ts'
import type { EndpointState } from '../../net/upstream/balancer/balancer.ts'
import type { ServerMetrics } from './metrics.ts'

/** Words of a server's memory, which all workers share. */
const REQUESTS = 0
const TOKENS = 1
const SCRAPE_AT = 2
const SCRAPED_AT = 3
const WAITING = 4
const OTHERS = 5
const KV_USE = 6
const CACHE_TOKENS = 7
const ADAPTERS = 8
const HAS_ADAPTERS = 9
const STATE = 10
const FAILED_AT = 11
const WORDS = 12

/** Values of a metric beyond this are wrong. */
const MAX_COUNT = 100_000
/** Tokens of the cache of a server that does not report it: an 8B model on a GPU with 80 GB. */
const DEFAULT_CACHE_TOKENS = 400_000

/** The clock that all workers share, in whole milliseconds of 31 bits. */
const sharedMs = (nowMs: number): number => Math.floor(nowMs + CLOCK_OFFSET_MS) & 0x7fffffff
const since = (at: number, nowMs: number): number => (sharedMs(nowMs) - at) & 0x7fffffff

/** How long a server is avoided after a failure of its own. */
const AVOID_MS = 5000

/** Its metrics: not read yet; read; not there; of no known server; or there was no connection. */
export const metricsStates = ['unknown', 'read', 'missing', 'unsupported', 'unreachable'] as const
export type MetricsState = (typeof metricsStates)[number]
const READ = metricsStates.indexOf('read')
const UNREACHABLE = metricsStates.indexOf('unreachable')

/** One model server: what it was sent, and what it reports. */
export class ModelServer {
  readonly endpoint: EndpointState
  #cell: SharedCell | undefined
  #words: Int32Array<SharedArrayBuffer>
  /** May be picked: it is in the config, not draining and not evicted. */
  isEligible = true
  /** The last pick that found a part of its prompt here, and how many tokens. */
  seenBy = 0
  matched = 0
  /** Tokens that this worker has sent and that were not in the cache. */
  tokensRead = 0
  /** It is not in the config any more. */
  isGone = false

  /** `cell`: memory that all workers share; undefined: this thread handles all traffic. */
  constructor(endpoint: EndpointState, cell?: SharedCell) {
    this.endpoint = endpoint
    this.#cell = cell
    this.#words = cell === undefined ? new Int32Array(new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT)) : wordsOf(cell)
  }

  /** Keeps the memory, which is reused for other names after an hour. */
  touch(): void {
    const cell = this.#cell?.touch()
    if (cell === undefined || cell === this.#cell) return
    this.#cell = cell
    this.#words = wordsOf(cell)
  }

  /** A request with `tokens` that the server has to read is sent to it. */
  begin(tokens: number): void {
    this.touch()
    Atomics.add(this.#words, REQUESTS, 1)
    Atomics.add(this.#words, TOKENS, tokens)
  }

  /** The server has read the prompt: the response begins. */
  read(tokens: number): void {
    Atomics.sub(this.#words, TOKENS, tokens)
  }

  end(): void {
    Atomics.sub(this.#words, REQUESTS, 1)
  }

  /** Requests of this process that are in flight. */
  get requests(): number {
    return Atomics.load(this.#words, REQUESTS)
  }

  /** Tokens of prompts that it was sent and has not read. */
  get tokens(): number {
    return Atomics.load(this.#words, TOKENS)
  }

  /** Requests that it reports besides those of this process; 0 if its metrics are old. */
  get others(): number {
    return Atomics.load(this.#words, OTHERS)
  }

  /** Requests that wait there for a free place. */
  get waiting(): number {
    return Atomics.load(this.#words, WAITING)
  }

  /** Share of its KV cache that is in use, 0 to 1. */
  get kvUse(): number {
    return Atomics.load(this.#words, KV_USE) / 1000
  }

  /** Tokens that its cache holds. */
  get cacheTokens(): number {
    return Atomics.load(this.#words, CACHE_TOKENS) || DEFAULT_CACHE_TOKENS
  }

  get hasAdapters(): boolean {
    return Atomics.load(this.#words, HAS_ADAPTERS) === 1
  }

  /** Whether it reports requests of an adapter; several adapters may have one bit. */
  hasAdapter(bit: number): boolean {
    return (Atomics.load(this.#words, ADAPTERS) & bit) !== 0
  }

  get state(): MetricsState {
    return metricsStates[Atomics.load(this.#words, STATE)] ?? 'unknown'
  }

  /** The server is overloaded or does not respond: for a time it is the last choice. */
  strike(nowMs: number): void {
    Atomics.store(this.#words, FAILED_AT, sharedMs(nowMs) | 1)
  }

  isAvoided(nowMs: number): boolean {
    const at = Atomics.load(this.#words, FAILED_AT)
    return (at !== 0 && since(at, nowMs) < AVOID_MS) || Atomics.load(this.#words, STATE) === UNREACHABLE
  }

  /** Returns true to one of the workers in each interval, which then reads the metrics. */
  claimScrape(nowMs: number, intervalMs: number): boolean {
    const at = Atomics.load(this.#words, SCRAPE_AT)
    if (at !== 0 && since(at, nowMs) < intervalMs) return false
    return Atomics.compareExchange(this.#words, SCRAPE_AT, at, sharedMs(nowMs) | 1) === at
  }

  store(metrics: ServerMetrics, nowMs: number): void {
    const waiting = countOf(metrics.waiting)
    this.touch()
    const words = this.#words
    Atomics.store(words, WAITING, waiting)
    Atomics.store(words, OTHERS, Math.max(0, waiting + countOf(metrics.running) - this.requests))
    Atomics.store(words, KV_USE, Math.round(1000 * Math.min(1, Math.max(0, metrics.kvUse ?? 0))))
    Atomics.store(words, CACHE_TOKENS, Math.min(2 ** 30, Math.max(0, Math.floor(metrics.cacheTokens ?? 0))))
    Atomics.store(words, HAS_ADAPTERS, metrics.adapters === undefined ? 0 : 1)
    Atomics.store(
      words,
      ADAPTERS,
      (metrics.adapters ?? []).reduce((bits, name) => bits | adapterBit(name), 0),
    )
    Atomics.store(words, STATE, READ)
    Atomics.store(words, SCRAPED_AT, sharedMs(nowMs))
  }

  /** Forgets metrics that are old, so that the server is neither preferred nor avoided for them. */
  expire(nowMs: number, maxMs: number): void {
    if (this.state === 'read' && since(Atomics.load(this.#words, SCRAPED_AT), nowMs) > maxMs) this.fail('unknown')
  }

  /** The metrics cannot be used. */
  fail(state: Exclude<MetricsState, 'read'>): void {
    for (const word of [WAITING, OTHERS, KV_USE, ADAPTERS]) Atomics.store(this.#words, word, 0)
    Atomics.store(this.#words, STATE, metricsStates.indexOf(state))
  }
}

const countOf = (value: number | undefined): number => Math.min(MAX_COUNT, Math.max(0, Math.round(value ?? 0)))

function wordsOf({ content }: SharedCell): Int32Array<SharedArrayBuffer> {
  return new Int32Array(content.buffer, content.byteOffset, WORDS)
}

/** One of 32 bits for each adapter. */
export function adapterBit(name: string): number {
  let hash = 0
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  return 1 << ((hash ^ (hash >>> 15)) & 31)
}
