import { setTimeout as wait } from 'node:timers/promises'
import { METRIC_PREFIX } from '#api/names.ts'
import type { ConfigSnapshot } from '../../config/store.ts'
import { SharedHeldBytes } from '../../http/budget.ts'
import { backoffDelay } from '../../runtime/backoff.ts'
import { KeyValueStore } from '../../runtime/key-value.ts'
import type { LedgerBatch } from '../../store/ledger/batch.ts'
import type { Quotas } from '../../runtime/quotas.ts'
import type { Shares } from '../../runtime/shares.ts'
import type { Logger } from '../../observe/telemetry/log.ts'
import { retainRoutes } from '../../observe/telemetry/metrics/metrics.ts'
import { createRegistry, type FamilyDump, type Registry } from '../../observe/telemetry/metrics/registry.ts'
import type { LineWriter } from '../../observe/telemetry/writer.ts'
import { WAITING_LIMIT, type TraceFilter, type TraceReport } from '../../observe/trace/tracer.ts'
import type { CallThreads } from '../../management/console/thread.ts'
import { ConfigEncoder } from './config.ts'
import type { BindStatus, SharedMemory, WorkerData, WorkerDrain } from './data.ts'
import type { FromWorker } from './messages.ts'
import { PortRegistry } from './ports.ts'
import { Thread, WorkerEndedError } from './thread.ts'
import { Watch } from './watch.ts'

export interface WorkerPoolOptions {
  readonly count: number
  /** Module of the workers. */
  readonly file: URL
  readonly memory: SharedMemory
  dataOf(index: number): WorkerData
  readonly log: Logger
  readonly writer: LineWriter
  /** Registry of the main thread. */
  readonly registry: Registry
  /** Receives the rows of the workers. */
  readonly ledger: { write(batch: LedgerBatch): void } | undefined
  /** Gets shares of budgets; undefined: this is the only replica. */
  readonly shares: Shares | undefined
  /** Gets assignments from rate limit quota services. */
  readonly quotas: Quotas
}

interface Slot {
  readonly index: number
  thread: Thread
  isOnline: boolean
  /** Has applied a version of the config, and its ports are open or have failed once. */
  isServing: boolean
  startedAtMs: number
  /** The version that the worker has or will have; undefined: none. */
  config: ConfigSnapshot | undefined
  status: BindStatus
  /** Metrics at the last collection. */
  metrics: readonly FamilyDump[]
  /** Starts in a row that did not last. */
  failures: number
  /** Why the main thread ends it. */
  endCause: 'blocked' | 'config' | undefined
}

const OPENING: BindStatus = { pending: [], failures: [] }
/** A slower worker does not delay the next one. */
const STAGGER_MS = 500
/** A worker that does not answer does not keep the others from the new version. */
const PREPARE_MS = 2000
const COLLECT_MS = 1000
/** Between scrapes, so that few counts are lost with a worker. */
const KEEP_METRICS_MS = 10_000
/** A worker that lived longer is replaced at once. */
const STABLE_MS = 10_000
const BACKOFF = { initialMs: 500, maxMs: 30_000 }
/** Time for workers to end after the last connection was cut. */
const DRAIN_GRACE_MS = 3000

/** The worker threads of a data plane. They handle the traffic; the main thread sends the config, and replaces those that end or do not answer. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #encoder = new ConfigEncoder()
  readonly #ports = new PortRegistry()
  readonly #held: SharedHeldBytes
  readonly #watch: Watch
  /** Values of plugins. */
  readonly #values = new KeyValueStore()
  /** Counts of workers that ended. */
  readonly #past = createRegistry({ maxSeries: Infinity })
  readonly #restarts
  readonly #slots: Slot[] = []
  #target: ConfigSnapshot | undefined
  #pushing: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #isClosing = false
  #lastTrace = 0
  #traces = 0
  /** Settles the start: all workers are online, or one ended. */
  readonly #started = Promise.withResolvers<void>()

  constructor(options: WorkerPoolOptions) {
    this.#options = options
    this.#held = new SharedHeldBytes(options.memory.held, 0)
    const { registry, log } = options
    this.#restarts = registry.counter(`${METRIC_PREFIX}worker_restarts_total`, 'Worker threads that were replaced.', ['cause'])
    const running = registry.gauge(`${METRIC_PREFIX}workers`, 'Worker threads that handle traffic.').series()
    registry.onCollect(() => {
      running.value = this.#slots.filter(({ isOnline }) => isOnline).length
    })
    this.#watch = new Watch({
      beats: options.memory.beats,
      log,
      threadOf: (index) => (this.#slots[index]?.isOnline === true ? this.#slots[index].thread : undefined),
      onBlocked: (index) => this.#end(index, 'blocked'),
    })
  }

  /** Starts the workers. Rejects if one of them cannot start. */
  async start(): Promise<void> {
    for (let index = 0; index < this.#options.count; index++) this.#slots.push(this.#startSlot(index))
    this.#watch.start()
    this.#timer = setInterval(() => void this.#collect(false), KEEP_METRICS_MS).unref()
    await this.#started.promise
  }

  /** Parts that readiness waits for. A worker that is being replaced is none: the others have its ports, unless all are being replaced. */
  pending(): string[] {
    if (this.#target !== undefined && !this.#slots.some(({ isServing }) => isServing)) return ['no worker runs']
    return [...new Set(this.#slots.flatMap(({ status }) => status.pending))]
  }

  /** Errors of ports that could not be opened. */
  failures(): Error[] {
    return [...new Set(this.#slots.flatMap(({ status }) => status.failures))].map((message) => new Error(message))
  }

  /** Resolves when every worker has applied a version, and its ports are open or have failed once. Rejects if a worker cannot use it; then none has it. */
  push(next: ConfigSnapshot): Promise<void> {
    const pushed = this.#pushing.then(() => this.#push(next))
    this.#pushing = pushed.catch(() => undefined)
    return pushed
  }

  /** The metrics of the main thread and of all workers. Counters include those of workers that ended. */
  async collect(): Promise<Registry> {
    await this.#collect(true)
    const merged = createRegistry({ maxSeries: Infinity })
    for (const dump of [this.#options.registry.dump(), this.#past.dump(), ...this.#slots.map(({ metrics }) => metrics)]) merged.add(dump)
    return merged
  }

  /** Removes counts of deleted routes that workers left behind. */
  retainRoutes(isAlive: (route: string) => boolean): void {
    retainRoutes(this.#past, isAlive)
  }

  /** As `Tracer.wait`, for the requests of all workers. */
  async trace(filter: TraceFilter, timeoutMs: number, signal?: AbortSignal): Promise<TraceReport | undefined> {
    if (this.#traces >= WAITING_LIMIT) throw new RangeError(`${WAITING_LIMIT} traces are waiting already: end one of them`)
    this.#traces++
    const trace = ++this.#lastTrace
    const threads = this.#online()
    try {
      return await new Promise((resolve) => {
        const all = threads.map((thread) => thread.request('trace', { trace, filter, timeoutMs }).then((report) => report && resolve(report), ignore))
        void Promise.all(all).then(() => resolve(undefined))
        signal?.addEventListener('abort', () => resolve(undefined), { once: true })
      })
    } finally {
      this.#traces--
      for (const thread of threads) thread.request('cancelTrace', trace).catch(ignore)
    }
  }

  setLevel(spec: string): void {
    for (const { thread } of this.#slots) thread.request('level', spec).catch(ignore)
  }

  /** Calls a method of the management API in every worker; those that do not respond in time are left out. */
  readonly callThreads: CallThreads = async (method, body) => {
    const results: unknown[] = []
    const calls = this.#online().map((thread) => thread.request('console', { method, body }).then((result) => void results.push(result), ignore))
    await firstOf(Promise.all(calls), COLLECT_MS)
    return [...results] as never
  }

  /** Memory of each worker. */
  memory(): Promise<readonly NodeJS.MemoryUsage[]> {
    return Promise.all(this.#online().map((thread) => thread.request('memory', undefined))).catch(() => [])
  }

  /** Finishes the requests of all workers; ends those that are not done in time. */
  async drain(settings: WorkerDrain): Promise<void> {
    this.#isClosing = true
    this.#watch.close()
    clearInterval(this.#timer)
    const { minDrainMs, maxDrainMs } = settings
    const drained = Promise.all(this.#slots.map(({ thread }) => thread.request('drain', { minDrainMs, maxDrainMs }).catch(ignore)))
    await firstOf(drained, Math.max(minDrainMs, maxDrainMs) + DRAIN_GRACE_MS)
    await firstOf(Promise.all(this.#slots.map(({ thread }) => thread.request('finish', undefined).catch(ignore))), DRAIN_GRACE_MS)
    await this.close()
  }

  async close(): Promise<void> {
    this.#isClosing = true
    this.#watch.close()
    clearInterval(this.#timer)
    await Promise.all(this.#slots.map(({ thread }) => thread.terminate()))
  }

  #startSlot(index: number): Slot {
    const thread: Thread = new Thread(this.#options.file, this.#options.dataOf(index), {
      onMessage: (message) => this.#receive(slot, thread, message),
      onEnd: (error, code) => this.#onEnd(slot, thread, error, code),
    })
    const slot: Slot = {
      index,
      thread,
      isOnline: false,
      isServing: false,
      startedAtMs: performance.now(),
      config: undefined,
      status: OPENING,
      metrics: [],
      failures: this.#slots[index]?.failures ?? 0,
      endCause: undefined,
    }
    const target = this.#target
    if (target !== undefined) {
      const prepared = this.#prepare(slot, target)
      const applied = thread.request('commit', undefined)
      Promise.all([prepared, applied]).then(
        ([, status]) => Object.assign(slot, { status, isServing: true }),
        (error: unknown) => this.#refuse(slot, error),
      )
    }
    return slot
  }

  #receive(slot: Slot, thread: Thread, message: Exclude<FromWorker, { type: 'result' | 'failure' }>): void {
    switch (message.type) {
      case 'online':
        slot.isOnline = true
        if (this.#slots.every(({ isOnline }) => isOnline)) this.#started.resolve()
        return
      case 'log':
        this.#options.writer.write(message.text)
        return
      case 'ledger':
        this.#options.ledger?.write(message.batch)
        return
      case 'binds':
        slot.status = message.status
        return
      case 'release':
        return this.#ports.release(thread, message.port)
      case 'keyValue':
        return this.#runKeyValue(thread, message)
      case 'share':
        return void this.#respond(thread, message.id, this.#options.shares?.want(message.bucket))
      case 'quota':
        return void this.#respond(thread, message.id, this.#options.quotas.assign(message.bucket))
      case 'claim':
        this.#ports.claim(thread, message.port, message.addresses).then(
          () => thread.send({ type: 'claimed', id: message.id }),
          (error: Error) => thread.send({ type: 'claimed', id: message.id, error: error.message }),
        )
    }
  }

  async #respond(thread: Thread, id: number, result: Promise<boolean> | undefined): Promise<void> {
    thread.send({ type: 'shareResult', id, hasResponse: (await result?.catch(() => false)) ?? false })
  }

  #runKeyValue(thread: Thread, { id, plugin, call }: Extract<FromWorker, { type: 'keyValue' }>): void {
    try {
      if (call === undefined) this.#values.drop(plugin)
      thread.send({ type: 'keyValueResult', id, ...(call !== undefined && { result: this.#values.run(plugin, call) }) })
    } catch (error) {
      thread.send({ type: 'keyValueResult', id, error: (error as Error).message })
    }
  }

  async #push(next: ConfigSnapshot): Promise<void> {
    const before = this.#target
    this.#target = next
    const slots = [...this.#slots]
    let refusal: Error | undefined
    const prepared = []
    for (const slot of slots) {
      const own = this.#prepare(slot, next).catch((error: unknown) => {
        if (!(error instanceof WorkerEndedError)) refusal ??= error as Error
      })
      prepared.push(own)
      // One after another, so that they do not all pause at once.
      await firstOf(own, STAGGER_MS)
    }
    await firstOf(Promise.all(prepared), PREPARE_MS)
    if (refusal !== undefined) {
      this.#target = before
      for (const slot of slots) {
        slot.config = before
        slot.thread.request('discard', undefined).catch(ignore)
      }
      throw refusal
    }
    await Promise.all(slots.map((slot) => this.#commit(slot)))
  }

  #prepare(slot: Slot, next: ConfigSnapshot): Promise<undefined> {
    const encoded = this.#encoder.encode(slot.config, next)
    slot.config = next
    return slot.thread.request('prepare', encoded)
  }

  async #commit(slot: Slot): Promise<void> {
    try {
      slot.status = await slot.thread.request('commit', undefined)
      slot.isServing = true
    } catch (error) {
      this.#refuse(slot, error)
    }
  }

  /** A worker that cannot use a version that the others have is replaced. */
  #refuse(slot: Slot, error: unknown): void {
    if (error instanceof WorkerEndedError || this.#slots[slot.index] !== slot) return
    this.#options.log.error('worker cannot use the config', { code: 'PX4015', worker: slot.index, error })
    this.#end(slot.index, 'config')
  }

  #end(index: number, cause: NonNullable<Slot['endCause']>): void {
    const slot = this.#slots[index]
    if (slot === undefined || slot.endCause !== undefined) return
    slot.endCause = cause
    void slot.thread.terminate()
  }

  #onEnd(slot: Slot, thread: Thread, error: Error | undefined, code: number): void {
    const wasOnline = slot.isOnline
    slot.isOnline = false
    slot.isServing = false
    slot.status = OPENING
    this.#held.clear(slot.index + 1)
    this.#ports.releaseAll(thread)
    this.#past.add(slot.metrics, true)
    slot.metrics = []
    if (this.#isClosing) {
      if (error !== undefined)
        this.#options.log.error('worker ended', { code: 'PX4013', worker: slot.index, cause: 'crash', error: error.stack ?? error.message })
      return
    }
    const cause = slot.endCause ?? 'crash'
    this.#restarts.series(cause).value++
    const isStable = wasOnline && performance.now() - slot.startedAtMs > STABLE_MS
    slot.failures = isStable ? 0 : slot.failures + 1
    const delayMs = slot.failures <= 1 ? 0 : backoffDelay(slot.failures - 2, BACKOFF)
    this.#options.log.error('worker ended; it is replaced', {
      code: 'PX4013',
      worker: slot.index,
      cause,
      ...(error === undefined ? { exitCode: code } : { error: error.stack ?? error.message }),
      delayMs,
    })
    if (!wasOnline) this.#started.reject(error ?? new Error(`worker ${slot.index} ended at its start with code ${code}`))
    setTimeout(() => {
      if (!this.#isClosing) this.#slots[slot.index] = this.#startSlot(slot.index)
    }, delayMs).unref()
  }

  async #collect(isScrape: boolean): Promise<void> {
    const online = this.#slots.filter((slot) => slot.isOnline)
    const collected = online.map((slot) => slot.thread.request('collect', isScrape).then((metrics) => (slot.metrics = metrics), ignore))
    await firstOf(Promise.all(collected), COLLECT_MS)
  }

  #online(): Thread[] {
    return this.#slots.filter(({ isOnline }) => isOnline).map(({ thread }) => thread)
  }
}

const ignore = (): undefined => undefined

/** Resolves with the promise, or after some time without it. */
async function firstOf(promise: Promise<unknown>, ms: number): Promise<void> {
  const abort = new AbortController()
  await Promise.race([promise, wait(ms, undefined, { signal: abort.signal }).catch(ignore)])
  abort.abort()
}
