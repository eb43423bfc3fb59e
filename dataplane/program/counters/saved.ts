import { setTimeout as wait } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { COUNTER_WORDS, SAVED_WORD } from '../../policy/budgets/counter.ts'
import { SharedCells } from '../../runtime/shared-cells.ts'
import type { Logger } from '../../observe/telemetry/log.ts'
import type { SavedCounter } from './counter-file.ts'
import type { CounterData, FromCounters, ToCounters } from './counter-worker.ts'

/** Time between two looks at the same counter: the most that a crash loses. */
const SAVE_MS = 1000
/** Steps in which all counters are looked at, so that one takes less than a millisecond. */
const STEPS = 16
/** Time that the shutdown waits for the last write. */
const CLOSE_MS = 5000

// A literal name: images/bundle.ts checks that the file is in the bundle.
const FILE = new URL(import.meta.url.endsWith('.ts') ? './counter-worker.ts' : './counter-worker.js', import.meta.url)

export interface SavedCountersOptions {
  /** Of the SQLite file. */
  readonly path: string
  /** Memory of the counters of all threads. */
  readonly memory: SharedArrayBuffer
  readonly log: Logger
}

/**
 * Keeps the counters of budgets in a file, in the main thread: restores them before traffic starts, and writes what has changed each second. A write that
 * fails is logged once, and tried again.
 */
export class SavedCounters {
  readonly #options: SavedCountersOptions
  readonly #cells: SharedCells
  /** What was sent last, by cell. */
  readonly #sent: BigInt64Array
  readonly #worker: Worker
  #timer: NodeJS.Timeout | undefined
  #next = 0
  #isWriting = false
  #isFailing = false

  private constructor(options: SavedCountersOptions) {
    this.#options = options
    this.#cells = new SharedCells(options.memory, { evicts: true })
    this.#sent = new BigInt64Array(this.#cells.size * (COUNTER_WORDS + 1))
    this.#worker = new Worker(FILE, { workerData: { path: options.path } satisfies CounterData, name: 'counters' })
  }

  /** Opens the file and restores the counters in it. Rejects with the cause if it cannot be used. */
  static async open(options: SavedCountersOptions): Promise<SavedCounters> {
    const saved = new SavedCounters(options)
    await saved.#restore()
    saved.#worker.unref()
    saved.#timer = setInterval(() => saved.#step(), SAVE_MS / STEPS).unref()
    return saved
  }

  /** Writes what has changed and closes the file; gives up after five seconds. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    const ended = new Promise<void>((resolve) => this.#worker.once('exit', () => resolve()))
    this.#write(this.#changes(0, this.#cells.size))
    this.#post({ type: 'close' })
    const abort = new AbortController()
    await Promise.race([ended, wait(CLOSE_MS, undefined, { signal: abort.signal }).catch(() => undefined)])
    abort.abort()
    await this.#worker.terminate()
  }

  async #restore(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly SavedCounter[]>()
    this.#worker.on('message', (message: FromCounters) => {
      if (message.type === 'open') resolve(message.counters)
      else if (message.type === 'unusable') reject(new Error(message.error))
      else this.#onDone(message.error)
    })
    this.#worker.on('error', (error: unknown) => {
      reject(error instanceof Error ? error : new Error(String(error)))
      this.#onDone(String(error))
    })
    for (const [key, ...words] of await promise) {
      this.#cells.restore(key, (content) => {
        for (const [index, word] of words.entries()) content[index] = word
        content[SAVED_WORD] = 1n
      })
    }
    // What is restored is in the file.
    this.#changes(0, this.#cells.size)
  }

  #step(): void {
    if (this.#isWriting) return
    const count = this.#cells.size / STEPS
    this.#write(this.#changes(this.#next * count, count))
    this.#next = (this.#next + 1) % STEPS
  }

  /** The counters of a range of cells that are not as they were sent. */
  #changes(first: number, count: number): SavedCounter[] {
    const changed: SavedCounter[] = []
    const sent = this.#sent
    this.#cells.scan(first, count, (cell, key, content) => {
      if (Atomics.load(content, SAVED_WORD) === 0n) return
      const at = cell * (COUNTER_WORDS + 1)
      let isChanged = sent[at] !== key
      sent[at] = key
      const words: bigint[] = []
      for (let index = 0; index < COUNTER_WORDS; index++) {
        const word = Atomics.load(content, index)
        if (sent[at + 1 + index] !== word) isChanged = true
        sent[at + 1 + index] = word
        words.push(word)
      }
      if (isChanged) changed.push([key, ...words])
    })
    return changed
  }

  #write(counters: readonly SavedCounter[]): void {
    if (counters.length === 0) return
    this.#isWriting = true
    this.#post({ type: 'write', counters })
  }

  #onDone(error: string | undefined): void {
    this.#isWriting = false
    const { log, path } = this.#options
    if (error === undefined) {
      if (this.#isFailing) log.info('the counters of budgets are saved again', { path })
      this.#isFailing = false
      return
    }
    // All are written again.
    this.#sent.fill(0n)
    if (!this.#isFailing) log.warn('the counters of budgets cannot be saved', { code: 'PX4026', path, error })
    this.#isFailing = true
  }

  #post(message: ToCounters): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    this.#worker.postMessage(message)
  }
}
