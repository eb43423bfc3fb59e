import type { HookName } from './hooks/run.ts'
import type { LoadedPlugin } from './in-process-module.ts'
import { PluginError } from './plugin-error.ts'
import type { PluginRunner, Start, Step } from './runner.ts'
import type { ThreadOptions } from './thread.ts'

/** Time in which a plugin must be loaded. */
const LOAD_MS = 10_000

const noHooks: ReadonlySet<HookName> = new Set()

/**
 * A version of a plugin in this thread. A module cannot be unloaded: its memory is released when the process ends. A plugin that blocks the thread, ends the
 * process or exceeds its memory is not stopped.
 */
export class InProcessPlugin implements PluginRunner {
  readonly ready: Promise<void>
  readonly #options: ThreadOptions
  #plugin: LoadedPlugin | undefined
  readonly #pending = new Map<number, { resolve(step: Step): void; reject(error: PluginError): void; readonly timer: NodeJS.Timeout }>()
  readonly #open = new Set<number>()
  #isOver = false
  #isRetired = false
  #lastId = 0

  constructor(options: ThreadOptions) {
    this.#options = options
    this.ready = this.#load()
    this.ready.catch(() => undefined)
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
    const { id } = message
    const { timeoutMs } = this.#options
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#take(id)?.reject(new PluginError('timeout', `no result in ${timeoutMs} ms`))
        this.cancel(id)
      }, timeoutMs)
      this.#pending.set(id, { resolve, reject, timer })
      this.#open.add(id)
      plugin.receive(message)
    })
  }

  cancel(id: number): void {
    this.#plugin?.receive({ type: 'cancel', id })
    this.#close(id)
  }

  /** Ends the plugin when its calls have ended. Calls that have the middleware already continue. */
  retire(): void {
    this.#isRetired = true
    if (this.#open.size === 0) this.end('')
  }

  end(reason: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#plugin?.close()
    for (const id of this.#pending.keys()) this.#take(id)?.reject(new PluginError('failed', reason))
    this.#options.onEnd(reason)
  }

  async #load(): Promise<void> {
    const { data, timeoutMs, services, onLog, onMetrics } = this.#options
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new PluginError('failed', `not loaded in ${LOAD_MS / 1000} s`)), LOAD_MS)
    })
    try {
      // Loaded on demand: few data planes have plugins in process.
      const { loadPlugin } = await import('./in-process-module.ts')
      this.#plugin = await Promise.race([loadPlugin({ data, timeoutMs, services, onLog, onMetrics, onStep: (step) => this.#receive(step) }), late])
    } catch (error) {
      const failure = error instanceof PluginError ? error : new PluginError('failed', String(error))
      this.end(failure.message)
      throw failure
    } finally {
      clearTimeout(timer)
    }
  }

  #receive(step: Step | { readonly type: 'failed'; readonly id: number; readonly message: string }): void {
    const { id } = step
    if (step.type === 'failed') this.#take(id)?.reject(new PluginError('failed', step.message))
    else this.#take(id)?.resolve(step)
    if (step.type !== 'next') this.#close(id)
  }

  #close(id: number): void {
    this.#open.delete(id)
    if (this.#isRetired && this.#open.size === 0) this.end('')
  }

  #take(id: number): { resolve(step: Step): void; reject(error: PluginError): void } | undefined {
    const pending = this.#pending.get(id)
    if (pending === undefined) return undefined
    clearTimeout(pending.timer)
    this.#pending.delete(id)
    return pending
  }
}
