import { PluginError } from './plugin-error.ts'
import type { Step } from './runner.ts'

interface Pending {
  timer: NodeJS.Timeout | undefined
  readonly isTimed: boolean
  resolve(step: Step): void
  reject(error: PluginError): void
}

/** Steps that run, each with a timeout. */
export class PendingSteps {
  readonly #timeoutMs: number
  readonly #onTimeout: (id: number) => void
  readonly #pending = new Map<number, Pending>()
  /** Calls whose plugin has called `next()`: a process may send what follows in the same chunk, before anything waits for it. */
  readonly #afterNext = new Map<number, Promise<Step>>()

  /** `onTimeout` is called with the id of a call whose step was rejected because it took too long. */
  constructor(timeoutMs: number, onTimeout: (id: number) => void) {
    this.#timeoutMs = timeoutMs
    this.#onTimeout = onTimeout
  }

  /** Resolves with the end of the step. Rejects with a PluginError. */
  add(id: number): Promise<Step> {
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { timer: this.#start(id), isTimed: true, resolve, reject })
    })
  }

  /** Waits without a timeout for a step that nothing asked for, after `next()` and until the next `add`. */
  wait(id: number): Promise<Step> {
    const step = this.#afterNext.get(id) ?? this.#expect(id)
    this.#afterNext.delete(id)
    return step
  }

  resolve(step: Step): void {
    const pending = this.#take(step.id)
    if (pending === undefined) return
    if (step.type === 'next') {
      const following = this.#expect(step.id)
      // Nothing waits for it if the request ends first.
      following.catch(() => undefined)
      this.#afterNext.set(step.id, following)
    }
    pending.resolve(step)
  }

  reject(id: number, error: PluginError): void {
    this.#take(id)?.reject(error)
  }

  rejectAll(error: PluginError): void {
    for (const id of this.#pending.keys()) this.reject(id, error)
  }

  /** Stops the time of a step that waits for the gateway. */
  pause(id: number): void {
    const pending = this.#pending.get(id)
    if (pending === undefined) return
    clearTimeout(pending.timer)
    pending.timer = undefined
  }

  /** Starts the time of a step anew if it is stopped. */
  resume(id: number): void {
    const pending = this.#pending.get(id)
    if (pending?.isTimed === true) pending.timer ??= this.#start(id)
  }

  #expect(id: number): Promise<Step> {
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { timer: undefined, isTimed: false, resolve, reject })
    })
  }

  #start(id: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.reject(id, new PluginError('timeout', `no result in ${this.#timeoutMs} ms`))
      this.#onTimeout(id)
    }, this.#timeoutMs)
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id)
    if (pending === undefined) return undefined
    clearTimeout(pending.timer)
    this.#pending.delete(id)
    return pending
  }
}
