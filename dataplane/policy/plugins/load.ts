import { readFileSync } from 'node:fs'
import { PluginError } from './plugin-error.ts'

/** Time that a plugin may use to load. */
const LOAD_MS = 10_000
/** Time between two looks at that time. */
const CHECK_MS = 50
/** Plugins that start at a time in one thread of the data plane. More would only share the same core. */
const MAX_TURNS = 2
/** A plugin that has used this much keeps loading, but no other plugin waits for it any more. */
const TURN_MS = 1000
/** Unit of times in /proc: 100 per second on all platforms of Node. */
const TICK_MS = 10

const waiting: PluginLoad[] = []
const turns = new Set<PluginLoad>()

function giveTurns(): void {
  while (turns.size < MAX_TURNS) {
    const load = waiting.shift()
    if (load === undefined) return
    turns.add(load)
    load.start()
  }
}

export interface LoadOptions {
  /** Time for which a request waits while the plugin loads. */
  readonly timeoutMs: number
  /** Called when it is the plugin's turn. */
  readonly start: () => void
  /** Called when the plugin has used its time. */
  readonly onTimeout: (reason: string) => void
}

/**
 * One start of a plugin. Few plugins start at a time. Their time does not include waiting for a turn, the start of the thread or process, and waiting for a core: on a
 * machine that has little time, plugins load late and do not fail.
 */
export class PluginLoad {
  /** Resolves when calls can start. */
  readonly ready: Promise<void>
  readonly #options: LoadOptions
  readonly #settle: PromiseWithResolvers<void>
  /** Rejects when requests do not wait any longer. */
  readonly #late = Promise.withResolvers<never>()
  /** A file of /proc with the state and the CPU time of the plugin. */
  #stat: string | undefined
  #cpuMs = 0
  #usedMs = 0
  #clock: NodeJS.Timeout | undefined
  #isOver = false

  constructor(options: LoadOptions) {
    this.#options = options
    this.#settle = Promise.withResolvers<void>()
    this.ready = this.#settle.promise
    this.ready.catch(() => undefined)
    this.#late.promise.catch(() => undefined)
    waiting.push(this)
    // The owner has its reference before it is called.
    queueMicrotask(giveTurns)
  }

  get isOver(): boolean {
    return this.#isOver
  }

  start(): void {
    this.#options.start()
  }

  /** Waits for it with a request: it is the next one to start. Rejects with a PluginError when it has failed, or has used the time of a step. */
  wait(): Promise<void> {
    if (this.#isOver) return this.ready
    const at = waiting.indexOf(this)
    if (at > 0) waiting.unshift(...waiting.splice(at, 1))
    return Promise.race([this.ready, this.#late.promise])
  }

  /** The module starts to run: its time begins. `stat`: file with the CPU time of its thread or process. */
  begin(stat: string | undefined): void {
    if (this.#clock !== undefined || this.#isOver) return
    this.#stat = stat
    this.#cpuMs = this.#read()?.cpuMs ?? 0
    this.#clock = setInterval(() => this.#check(), CHECK_MS).unref()
  }

  succeed(): void {
    this.#end()
    this.#settle.resolve()
  }

  fail(reason: string): void {
    this.#end()
    this.#settle.reject(new PluginError('failed', reason === '' ? 'the plugin ended' : reason))
  }

  #end(): void {
    this.#isOver = true
    clearInterval(this.#clock)
    const at = waiting.indexOf(this)
    if (at >= 0) waiting.splice(at, 1)
    this.#leave()
  }

  #leave(): void {
    if (turns.delete(this)) giveTurns()
  }

  /** A plugin that waits uses time too. One that could run and has no core does not. */
  #check(): void {
    const now = this.#read()
    const isWaiting = now === undefined || now.isWaiting
    this.#usedMs += isWaiting ? CHECK_MS : Math.max(0, now.cpuMs - this.#cpuMs)
    this.#cpuMs = now?.cpuMs ?? 0
    const { timeoutMs, onTimeout } = this.#options
    if (this.#usedMs >= timeoutMs) this.#late.reject(new PluginError('timeout', `not loaded in ${timeoutMs} ms`))
    if (this.#usedMs >= TURN_MS) this.#leave()
    if (this.#usedMs >= LOAD_MS) onTimeout(`not loaded in ${LOAD_MS / 1000} s`)
  }

  /** Linux only. Elsewhere all time counts that this thread sees pass. */
  #read(): { readonly cpuMs: number; readonly isWaiting: boolean } | undefined {
    if (this.#stat === undefined) return undefined
    try {
      const text = readFileSync(this.#stat, 'latin1')
      // The name before it may have any character.
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
      return { isWaiting: fields[0] !== 'R', cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS }
    } catch {
      return undefined
    }
  }
}
