import { Worker } from 'node:worker_threads'
import type { HookName } from './hooks/run.ts'
import type { FromPlugin, MetricSample, PluginData, StreamMessage, ToPlugin } from './guest/messages.ts'
import { OpenCalls } from './open-calls.ts'
import { PluginError } from './plugin-error.ts'
import { streamIn, type PluginRunner, type Start, type Step } from './runner.ts'
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

/** Time in which a plugin must be loaded. */
const LOAD_MS = 10_000
/** Time in which a thread must respond to a ping before it counts as blocked. */
const PING_MS = 250
const MEMORY_CHECK_MS = 500
const MEBIBYTE = 1024 * 1024
/** Memory of a thread without a plugin that is counted as external: buffers of Node itself. */
const BASE_MB = 8

/** A worker thread with one version of a plugin. It does not keep the process alive. */
export class PluginThread implements PluginRunner {
  readonly ready: Promise<void>
  hooks: ReadonlySet<HookName> = new Set()
  readonly #options: ThreadOptions
  readonly #worker: Worker
  readonly #steps: PendingSteps
  /** Calls that have started and not ended, those that wait for the response of `next()` included. */
  readonly #open = new OpenCalls(() => (this.#isRetired ? this.end('') : undefined))
  #isOver = false
  #isRetired = false
  #ping: NodeJS.Timeout | undefined
  #memory: NodeJS.Timeout | undefined
  #lastId = 0

  constructor(options: ThreadOptions) {
    this.#options = options
    this.#steps = new PendingSteps(options.timeoutMs, (id) => this.timeOut(id))
    this.#worker = new Worker(new URL(import.meta.url.endsWith('.ts') ? './guest/plugin-worker.ts' : './plugin-worker.js', import.meta.url), {
      workerData: options.data,
      env: {},
      argv: [],
      stdin: false,
      stdout: true,
      stderr: true,
      trackUnmanagedFds: true,
      resourceLimits: { maxOldGenerationSizeMb: options.memoryMb, maxYoungGenerationSizeMb: Math.min(16, options.memoryMb / 4), stackSizeMb: 4 },
    })
    this.#worker.stdout.resume()
    this.#worker.stderr.resume()
    this.#worker.unref()
    this.ready = this.#load()
    this.ready.catch(() => undefined)
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
    clearTimeout(this.#ping)
    clearInterval(this.#memory)
    void this.#worker.terminate()
    const error = new PluginError('failed', reason)
    this.#steps.rejectAll(error)
    this.#open.cancelAll(error)
    this.#options.onEnd(reason)
  }

  #load(): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (reason: string): void => {
        clearTimeout(timer)
        reject(new PluginError('failed', reason))
        this.end(reason)
      }
      const timer = setTimeout(() => fail(`not loaded in ${LOAD_MS / 1000} s`), LOAD_MS)
      this.#worker.on('message', (message: FromPlugin) => {
        if (message.type === 'invalid') return fail(message.message)
        if (message.type !== 'ready') return this.#receive(message)
        clearTimeout(timer)
        this.hooks = new Set(message.hooks)
        resolve()
      })
      this.#worker.on('error', (error) => fail(describeEnd(error, this.#options.memoryMb)))
      this.#worker.on('exit', () => fail('the thread of the plugin ended'))
    })
  }

  #receive(message: FromPlugin): void {
    switch (message.type) {
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
      default:
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

  /** The limit of V8 does not count buffers. */
  async #checkMemory(): Promise<void> {
    const { memoryMb } = this.#options
    const statistics = await this.#worker.getHeapStatistics?.().catch(() => undefined)
    if (statistics === undefined) return
    const usedMb = (statistics.used_heap_size + statistics.external_memory) / MEBIBYTE
    if (usedMb > memoryMb + BASE_MB) this.end(`exceeded its memory limit of ${memoryMb} MiB: uses ${Math.round(usedMb)} MiB`)
  }

  #send(message: ToPlugin): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    this.#worker.postMessage(message)
  }
}

function describeEnd(error: unknown, memoryMb: number): string {
  if ((error as { code?: unknown }).code === 'ERR_WORKER_OUT_OF_MEMORY') return `exceeded its memory limit of ${memoryMb} MiB`
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}
