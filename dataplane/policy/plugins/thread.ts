import type { HookName } from './hooks/run.ts'
import type { FromPlugin, MetricSample, PluginData, StreamMessage, ToPlugin } from './guest/messages.ts'
import { PluginLoad } from './load.ts'
import { OpenCalls } from './open-calls.ts'
import { PluginError } from './plugin-error.ts'
import { streamIn, type PluginHost, type PluginRunner, type Start, type StartHost, type Step } from './runner.ts'
import { runService, type PluginServices, type ServiceCall } from './guest/services.ts'
import { PendingSteps } from './steps.ts'
import type { CallStreams } from './streams.ts'

/** Limits and reports of a thread. */
export interface ThreadOptions {
  readonly data: PluginData
  /** Of each step. */
  readonly timeoutMs: number
  readonly memoryMb: number
  readonly onLog: (level: Extract<FromPlugin, { type: 'log' }>['level'], message: string) => void
  readonly services: PluginServices
  readonly onMetrics: (samples: readonly MetricSample[]) => void
  /** Called once, when the thread cannot be used any more. */
  readonly onEnd: (reason: string) => void
}

/** Time in which a thread must respond to a ping before it counts as blocked. */
const PING_MS = 250
/** Time between checks of memory while a plugin is loaded or has calls; otherwise ten times as much. */
const MEMORY_CHECK_MS = 50
const CHECKS_PER_IDLE_CHECK = 10
/** Time that a plugin may exceed its memory, so that it can collect garbage. */
const COLLECT_MS = 500
/** Memory above the limit, or as much as the limit, that ends a plugin at once. */
const EXCESS_MB = 64

/** A worker thread or a process with one version of a plugin. It does not keep the data plane alive. */
export class PluginThread implements PluginRunner {
  readonly load: PluginLoad
  hooks: ReadonlySet<HookName> = new Set()
  readonly #options: ThreadOptions
  /** Undefined until it is started. */
  #host: PluginHost | undefined
  readonly #steps: PendingSteps
  /** Calls that have started and not ended, those that wait for the response of `next()` included. */
  readonly #open = new OpenCalls(() => (this.#isRetired ? this.end('') : undefined))
  #isOver = false
  #isRetired = false
  #checks = 0
  #isChecking = false
  /** Time of the first of the checks in a row that found too much. */
  #excessiveSinceMs: number | undefined
  #ping: NodeJS.Timeout | undefined
  #memory: NodeJS.Timeout | undefined
  #lastId = 0

  constructor(options: ThreadOptions, start: StartHost) {
    this.#options = options
    this.#steps = new PendingSteps(options.timeoutMs, (id) => this.timeOut(id))
    const { timeoutMs } = options
    this.load = new PluginLoad({ timeoutMs, start: () => this.#start(start), onTimeout: (reason) => this.end(reason) })
  }

  #start(start: StartHost): void {
    this.#host = start(this.#options, { onMessage: (message) => this.#receive(message), onEnd: (reason) => this.end(reason) })
    this.#memory = setInterval(() => void this.#checkMemory(), MEMORY_CHECK_MS).unref()
  }

  get timeoutMs(): number {
    return this.#options.timeoutMs
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get busy(): number {
    return this.#open.size
  }

  retire(): void {
    this.#isRetired = true
    if (this.#open.size === 0) this.end('')
  }

  nextId(): number {
    return ++this.#lastId
  }

  run(message: Start): Promise<Step> {
    if (this.#isOver) return Promise.reject(new PluginError('failed', 'the thread of the plugin ended'))
    this.#open.add(message.id)
    const step = this.#steps.add(message.id)
    this.#send(message)
    return step
  }

  early(id: number): Promise<Step> {
    return this.#steps.wait(id)
  }

  attach(id: number, streams: CallStreams): void {
    this.#open.attach(id, streams)
  }

  post(message: StreamMessage): void {
    if (this.#isOver) return
    this.#send(message)
    if (message.type === 'data' || message.type === 'end') this.#steps.resume(message.id)
  }

  streamsClosed(id: number): void {
    this.#open.streamsClosed(id)
  }

  cancel(id: number): void {
    if (!this.#isOver) this.#send({ type: 'cancel', id })
    this.#open.cancel(id, new Error('the call of the plugin ended'))
  }

  end(reason: string): void {
    if (this.#isOver) return
    this.#isOver = true
    if (!this.load.isOver) this.load.fail(reason)
    clearTimeout(this.#ping)
    clearInterval(this.#memory)
    this.#host?.end()
    const error = new PluginError('failed', reason)
    this.#steps.rejectAll(error)
    this.#open.cancelAll(error)
    this.#options.onEnd(reason)
  }

  #receive(message: FromPlugin): void {
    if (this.#isOver) return
    switch (message.type) {
      case 'invalid':
        return this.end(message.message)
      case 'started':
        return this.load.begin(this.#host?.statFile(message))
      case 'ready':
        this.hooks = new Set(message.hooks)
        return this.load.succeed()
      case 'log':
        return this.#options.onLog(message.level, message.message)
      case 'metrics':
        return this.#options.onMetrics(message.samples)
      case 'pong':
        clearTimeout(this.#ping)
        this.#ping = undefined
        return
      case 'use':
        return this.#use(message.id, message.call)
      case 'failed':
        this.#steps.reject(message.id, new PluginError('failed', message.message))
        return this.#open.finish(message.id)
      case 'next':
      case 'done':
      case 'answer':
      case 'hooked':
        return this.#onStep(message)
      case 'pull':
        // The plugin waits for the client or the upstream.
        this.#steps.pause(message.id)
        return this.#open.receive(message)
      case 'stop':
      case 'data':
      case 'end':
        return this.#open.receive(message)
    }
  }

  #use(id: number, call: ServiceCall): void {
    const send = (message: ToPlugin): void => (this.#isOver ? undefined : this.#send(message))
    runService(this.#options.services, call).then(
      (result) => send({ type: 'used', id, result }),
      (error: unknown) => send({ type: 'used', id, error: error instanceof Error ? error.message : String(error) }),
    )
  }

  #onStep(step: Step): void {
    const stream = streamIn(step)
    if (stream !== undefined) this.#open.streams(step.id)?.open(stream)
    this.#steps.resolve(step)
    if (step.type !== 'next') this.#open.finish(step.id)
  }

  /** A thread that does not respond to a ping runs a loop: it is replaced. One that responds only waits for something. */
  timeOut(id: number): void {
    const { timeoutMs } = this.#options
    this.cancel(id)
    if (this.#ping !== undefined || this.#isOver) return
    this.#ping = setTimeout(() => this.end(`blocked for ${timeoutMs + PING_MS} ms`), PING_MS).unref()
    this.#send({ type: 'ping' })
  }

  /** Much of the memory may be garbage, which V8 collects late: only much more than the limit ends the plugin at once. */
  async #checkMemory(): Promise<void> {
    const isIdle = this.load.isOver && this.#open.size === 0
    if (this.#isChecking || (++this.#checks % CHECKS_PER_IDLE_CHECK > 0 && isIdle)) return
    this.#isChecking = true
    const usedMb = await this.#host?.excessMb()
    this.#isChecking = false
    if (this.#isOver) return
    if (usedMb === undefined) return void (this.#excessiveSinceMs = undefined)
    const { memoryMb } = this.#options
    const nowMs = performance.now()
    if (usedMb > memoryMb + Math.max(memoryMb, EXCESS_MB) || nowMs - (this.#excessiveSinceMs ?? nowMs) >= COLLECT_MS)
      return this.end(`exceeded its memory limit of ${memoryMb} MiB: uses ${Math.round(usedMb)} MiB`)
    if (this.#excessiveSinceMs === undefined) this.#send({ type: 'collect' })
    this.#excessiveSinceMs ??= nowMs
  }

  #send(message: ToPlugin): void {
    this.#host?.post(message)
  }
}
