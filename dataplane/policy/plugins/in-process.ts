import type { HookName } from './hooks/run.ts'
import type { LoadedPlugin, StepMessage } from './in-process-module.ts'
import type { StreamMessage } from './guest/messages.ts'
import { PluginLoad } from './load.ts'
import { OpenCalls } from './open-calls.ts'
import { PluginError } from './plugin-error.ts'
import { streamIn, type PluginRunner, type Start, type Step } from './runner.ts'
import { PendingSteps } from './steps.ts'
import type { CallStreams } from './streams.ts'
import type { ThreadOptions } from './thread.ts'

const noHooks: ReadonlySet<HookName> = new Set()

/**
 * A version of a plugin in this thread. A module cannot be unloaded: its memory is released when the process ends. A plugin that blocks the thread, ends the
 * process or exceeds its memory is not stopped.
 */
export class InProcessPlugin implements PluginRunner {
  readonly load: PluginLoad
  readonly #options: ThreadOptions
  #plugin: LoadedPlugin | undefined
  readonly #steps: PendingSteps
  readonly #open = new OpenCalls(() => (this.#isRetired ? this.end('') : undefined))
  #isOver = false
  #isRetired = false
  #lastId = 0

  constructor(options: ThreadOptions) {
    this.#options = options
    this.#steps = new PendingSteps(options.timeoutMs, (id) => this.timeOut(id))
    const { timeoutMs } = options
    this.load = new PluginLoad({ timeoutMs, start: () => void this.#load(), onTimeout: (reason) => this.end(reason) })
  }

  get timeoutMs(): number {
    return this.#options.timeoutMs
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get busy(): number {
    return this.#open.size + (this.#plugin?.direct.busy ?? 0)
  }

  /** The middleware, for calls without messages; undefined while it is loaded. */
  get direct(): LoadedPlugin['direct'] | undefined {
    return this.#isOver ? undefined : this.#plugin?.direct
  }

  get hooks(): ReadonlySet<HookName> {
    return this.#plugin?.direct.hooks ?? noHooks
  }

  nextId(): number {
    return ++this.#lastId
  }

  run(message: Start): Promise<Step> {
    const plugin = this.#plugin
    if (this.#isOver || plugin === undefined) return Promise.reject(new PluginError('failed', 'the plugin ended'))
    this.#open.add(message.id)
    const step = this.#steps.add(message.id)
    plugin.receive(message)
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
    this.#plugin?.receive(message)
    if (message.type === 'data' || message.type === 'end') this.#steps.resume(message.id)
  }

  streamsClosed(id: number): void {
    this.#open.streamsClosed(id)
  }

  timeOut(id: number): void {
    this.cancel(id)
  }

  cancel(id: number): void {
    this.#plugin?.receive({ type: 'cancel', id })
    this.#open.cancel(id, new Error('the call of the plugin ended'))
  }

  /** Ends the plugin when its calls have ended. Calls that have the middleware already continue. */
  retire(): void {
    this.#isRetired = true
    if (this.#open.size === 0) this.end('')
  }

  end(reason: string): void {
    if (this.#isOver) return
    this.#isOver = true
    if (!this.load.isOver) this.load.fail(reason)
    this.#plugin?.close()
    const error = new PluginError('failed', reason)
    this.#steps.rejectAll(error)
    this.#open.cancelAll(error)
    this.#options.onEnd(reason)
  }

  async #load(): Promise<void> {
    const { data, timeoutMs, services, onLog, onMetrics } = this.#options
    try {
      // Loaded on demand: few data planes have plugins in process.
      const { loadPlugin } = await import('./in-process-module.ts')
      this.load.begin(undefined)
      const plugin = await loadPlugin({ data, timeoutMs, services, onLog, onMetrics, onStep: (step) => this.#receive(step) })
      if (this.#isOver) return plugin.close()
      this.#plugin = plugin
      this.load.succeed()
    } catch (error) {
      this.end(error instanceof PluginError ? error.message : String(error))
    }
  }

  #receive(step: StepMessage): void {
    switch (step.type) {
      case 'failed':
        this.#steps.reject(step.id, new PluginError('failed', step.message))
        return this.#open.finish(step.id)
      case 'pull':
        // The plugin waits for the client or the upstream.
        this.#steps.pause(step.id)
        return this.#open.receive(step)
      case 'stop':
      case 'data':
      case 'end':
        return this.#open.receive(step)
      default: {
        const stream = streamIn(step)
        if (stream !== undefined) this.#open.streams(step.id)?.open(stream)
        this.#steps.resolve(step)
        if (step.type !== 'next') this.#open.finish(step.id)
      }
    }
  }
}
