import { randomInt } from 'node:crypto'
import { CLOCK_OFFSET_MS, type SharedCell, type SharedCells } from '../../../runtime/shared-cells.ts'
import { countInInterval, durationAfter, EWMA_ALPHA, isOverLimit, type EndpointHealth, type Eviction, type FailureRate, type SharedHealth } from './health.ts'

/** Words of a cell. Health and the health after an eviction, beside which is its status, are in millionths, times in microseconds; 0: not evicted. */
const HEALTH = 0
const FAILURES = 1
const EVICTIONS = 2
const UNTIL = 3
const RESTORED = 4
const INTERVAL = 5
/** Bits of RESTORED before the status. */
const STATUS_SHIFT = 32n

const toWord = (fraction: number): bigint => BigInt(Math.round(fraction * 1e6))
const fromWord = (word: bigint): number => Number(BigInt.asUintN(32, word)) / 1e6

/** Health of endpoints that all workers measure together, by a name that is the same in all of them. */
export class SharedHealthTable {
  readonly #cells: SharedCells
  /** Counts evictions and returns. */
  readonly #epoch: Int32Array<SharedArrayBuffer>

  constructor(cells: SharedCells, epoch: SharedArrayBuffer) {
    this.#cells = cells
    this.#epoch = new Int32Array(epoch)
  }

  static allocateEpoch(): SharedArrayBuffer {
    return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  }

  /** Changes with each eviction and return of any endpoint in any worker. */
  get epoch(): number {
    return Atomics.load(this.#epoch, 0)
  }

  /** Undefined if the table is full: each worker measures for itself. */
  open(name: string): SharedHealth | undefined {
    const cell = this.#cells.open(`health ${name}`, (words) => void (words[HEALTH] = toWord(1)))
    return cell && new CellHealth(cell, this.#epoch)
  }

  /** The state of a check that one worker makes for all. Undefined if the table is full: each worker makes its own. */
  openCheck(name: string): SharedCheck | undefined {
    const cell = this.#cells.open(`check ${name}`, () => undefined)
    return cell && new SharedCheck(cell, this.#epoch)
  }

  /** As `open`, if another worker has opened it. */
  find(name: string): SharedHealth | undefined {
    const cell = this.#cells.find(`health ${name}`)
    return cell && new CellHealth(cell, this.#epoch)
  }
}

/** Words of the cell of a check. */
const OWNER = 0
const OWNED_UNTIL = 1
const IS_DOWN = 2

/** Which worker makes a check, and its result. */
export class SharedCheck {
  #cell: SharedCell
  readonly #epoch: Int32Array<SharedArrayBuffer>
  /** Of this worker. */
  readonly #id = BigInt(randomInt(1, 2 ** 47))

  constructor(cell: SharedCell, epoch: Int32Array<SharedArrayBuffer>) {
    this.#cell = cell
    this.#epoch = epoch
  }

  /** Makes this worker the one that checks for `ms`, unless another one is. */
  acquire(nowMs: number, ms: number): boolean {
    this.#cell = this.#cell.touch() ?? this.#cell
    const words = this.#cell.content
    const owner = Atomics.load(words, OWNER)
    const now = BigInt(Math.round(nowMs + CLOCK_OFFSET_MS))
    const isFree = owner === 0n || owner === this.#id || Atomics.load(words, OWNED_UNTIL) < now
    if (!isFree || Atomics.compareExchange(words, OWNER, owner, this.#id) !== owner) return false
    Atomics.store(words, OWNED_UNTIL, now + BigInt(Math.round(ms)))
    return true
  }

  get isDown(): boolean {
    return Atomics.load(this.#cell.content, IS_DOWN) === 1n
  }

  set isDown(value: boolean) {
    Atomics.store(this.#cell.content, IS_DOWN, value ? 1n : 0n)
    Atomics.add(this.#epoch, 0, 1)
  }

  /** This worker checks no more. Returns true if it was the one that did. */
  release(): boolean {
    return Atomics.compareExchange(this.#cell.content, OWNER, this.#id, 0n) === this.#id
  }
}

class CellHealth implements SharedHealth {
  #cell: SharedCell
  readonly #epoch: Int32Array<SharedArrayBuffer>
  #seen = -1

  constructor(cell: SharedCell, epoch: Int32Array<SharedArrayBuffer>) {
    this.#cell = cell
    this.#epoch = epoch
  }

  settle(endpoint: EndpointHealth, isHealthy: boolean, eviction: Eviction | undefined, nowMs: number, status: number): boolean {
    const words = this.#words()
    const before = this.#addOutcome(words, isHealthy ? 1 : 0)
    if (eviction?.failureRate !== undefined && Atomics.load(words, UNTIL) === 0n) this.#countInInterval(words, isHealthy, eviction.failureRate, nowMs)
    const isEvicted = !isHealthy && this.#countFailure(words, before, eviction, nowMs, status)
    if (isHealthy) {
      Atomics.store(words, FAILURES, 0n)
      Atomics.store(words, EVICTIONS, 0n)
    }
    this.#load(endpoint, words)
    return isEvicted
  }

  sync(endpoint: EndpointHealth): void {
    const epoch = Atomics.load(this.#epoch, 0)
    if (epoch === this.#seen) return
    this.#seen = epoch
    this.#load(endpoint, this.#words())
  }

  restore(endpoint: EndpointHealth): boolean {
    const words = this.#words()
    const until = Atomics.load(words, UNTIL)
    // Another worker may have ended this eviction, and even begun the next one.
    const isSame = endpoint.evicted !== undefined && until !== 0n && Math.abs(toLocalMs(until) - endpoint.evicted.untilMs) < 1
    const isEnded = isSame && Atomics.compareExchange(words, UNTIL, until, 0n) === until
    if (isEnded) {
      Atomics.store(words, HEALTH, BigInt.asUintN(32, Atomics.load(words, RESTORED)))
      Atomics.add(this.#epoch, 0, 1)
    }
    this.#load(endpoint, words)
    return isEnded
  }

  reset(): void {
    const words = this.#words()
    Atomics.store(words, HEALTH, toWord(1))
    Atomics.store(words, FAILURES, 0n)
    Atomics.store(words, EVICTIONS, 0n)
    Atomics.store(words, INTERVAL, 0n)
  }

  #words(): BigInt64Array<SharedArrayBuffer> {
    this.#cell = this.#cell.touch() ?? this.#cell
    return this.#cell.content
  }

  /** Returns the health before. */
  #addOutcome(words: BigInt64Array<SharedArrayBuffer>, outcome: number): number {
    let word = Atomics.load(words, HEALTH)
    for (;;) {
      const health = fromWord(word)
      const found = Atomics.compareExchange(words, HEALTH, word, toWord(health + EWMA_ALPHA * (outcome - health)))
      if (found === word) return health
      word = found
    }
  }

  #countInInterval(words: BigInt64Array<SharedArrayBuffer>, isHealthy: boolean, rate: FailureRate, nowMs: number): void {
    let word = Atomics.load(words, INTERVAL)
    for (;;) {
      const found = Atomics.compareExchange(words, INTERVAL, word, countInInterval(word, isHealthy, rate, nowMs + CLOCK_OFFSET_MS))
      if (found === word) return
      word = found
    }
  }

  /** Returns true for the one failure that evicts the endpoint. */
  #countFailure(words: BigInt64Array<SharedArrayBuffer>, healthBefore: number, eviction: Eviction | undefined, nowMs: number, status: number): boolean {
    if (Atomics.load(words, UNTIL) !== 0n) return false
    const failures = Number(Atomics.add(words, FAILURES, 1n)) + 1
    if (eviction === undefined || !isOverLimit(failures, healthBefore, eviction, Atomics.load(words, INTERVAL))) return false
    const durationMs = durationAfter(eviction, Number(Atomics.load(words, EVICTIONS)) + 1)
    const restored = eviction.restoreHealth === undefined ? Atomics.load(words, HEALTH) : toWord(eviction.restoreHealth)
    Atomics.store(words, RESTORED, restored | (BigInt(status) << STATUS_SHIFT))
    if (Atomics.compareExchange(words, UNTIL, 0n, BigInt(Math.round((nowMs + durationMs + CLOCK_OFFSET_MS) * 1000))) !== 0n) return false
    Atomics.add(words, EVICTIONS, 1n)
    Atomics.store(words, INTERVAL, 0n)
    Atomics.add(this.#epoch, 0, 1)
    return true
  }

  #load(endpoint: EndpointHealth, words: BigInt64Array<SharedArrayBuffer>): void {
    endpoint.health = fromWord(Atomics.load(words, HEALTH))
    endpoint.failures = Number(Atomics.load(words, FAILURES))
    endpoint.evictions = Number(Atomics.load(words, EVICTIONS))
    const until = Atomics.load(words, UNTIL)
    const restored = Atomics.load(words, RESTORED)
    endpoint.evicted = until === 0n ? undefined : { untilMs: toLocalMs(until), health: fromWord(restored), status: Number(restored >> STATUS_SHIFT) }
  }
}

const toLocalMs = (micros: bigint): number => Number(micros) / 1000 - CLOCK_OFFSET_MS
