import type { Context, MiddlewareHandler } from 'hono'
import type { FromPlugin, RequestChange, ResponseChange } from './messages.ts'
import { PluginContext, type Subject } from './plugin-context.ts'

/** A response of a plugin that did not call `next()`. */
export type Answer = Pick<Extract<FromPlugin, { type: 'answer' }>, 'status' | 'headers' | 'body'>

/** The plugin of a call. */
export interface Callee {
  readonly middleware: MiddlewareHandler
  /** A step of the call begins: the one until `next()`, or the one after it. */
  begin?(call: PluginCall): void
  /** The step has ended. Called again when the call ends. */
  end?(call: PluginCall): void
  /** The error with which a call rejects for one that the plugin threw. */
  toError(thrown: unknown): unknown
}

/** The exchange that a plugin is called for. */
export interface Target extends Subject {
  changeRequest(change: RequestChange): void
  /** Runs the rest of the chain. */
  next(): Promise<void>
  changeResponse(change: ResponseChange): void
}

/** One request in a plugin. Promises are few: without Hono's context, a call has one besides those of the plugin and of `next()`. */
export class PluginCall {
  /** Whether the plugin called `next()`. */
  isForwarded = false
  readonly #plugin: Callee
  readonly #target: Target
  readonly #context: PluginContext
  #forwarding: Promise<void> | undefined = undefined
  #hasResponse = false
  #isOver = false
  /** An error of the gateway, not of the plugin. */
  #fatal: unknown = undefined
  #resolve: ((answer: Answer | undefined) => void) | undefined = undefined
  #reject: ((error: unknown) => void) | undefined = undefined

  constructor(plugin: Callee, target: Target) {
    this.#plugin = plugin
    this.#target = target
    this.#context = new PluginContext(target)
  }

  /** Runs the plugin, and the rest of the chain as its `next()`. Resolves with its own response, if it has one. Rejects with an error of the plugin (`toError`) or of the gateway. */
  run(): Promise<Answer | undefined> {
    return new Promise<Answer | undefined>((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      try {
        const pending = this.#plugin.middleware(this.#context as unknown as Context, () => this.#startNext())
        if (!this.isForwarded) this.#plugin.begin?.(this)
        if (pending instanceof Promise) pending.then(this.#onReturn, this.#onThrow)
        else this.#onReturn(pending)
      } catch (thrown) {
        this.#onThrow(thrown)
      }
    })
  }

  expire(error: Error): void {
    if (!this.#isOver) this.#end(() => this.#reject?.(error))
  }

  #end(settle: () => void): void {
    this.#isOver = true
    this.#plugin.end?.(this)
    this.#context.close()
    settle()
  }

  readonly #onReturn = (returned: Response | void): void => {
    if (this.#isOver) return
    if (this.#hasResponse && this.#context.created === undefined) return this.#end(() => this.#resolve?.(undefined))
    this.#finish(returned).then((answer) => this.#succeed(answer), this.#fail)
  }

  readonly #onThrow = (thrown: unknown): void => {
    if (this.#isOver) return
    try {
      this.#onReturn(this.#recover(thrown))
    } catch (error) {
      this.#fail(error)
    }
  }

  #succeed(answer: Answer | undefined): void {
    if (!this.#isOver) this.#end(() => this.#resolve?.(answer))
  }

  readonly #fail = (thrown: unknown): void => {
    if (this.#isOver) return
    // What next() does from now on concerns nobody.
    this.#forwarding?.catch(() => undefined)
    const error = this.#fatal ?? this.#plugin.toError(thrown)
    this.#end(() => this.#reject?.(error))
  }

  /** HTTPException of Hono is a response; a bundled plugin has a class of its own. */
  #recover(thrown: unknown): Response {
    if (typeof thrown !== 'object' || thrown === null || !('getResponse' in thrown) || typeof thrown.getResponse !== 'function') throw thrown
    const response = thrown.getResponse() as Response
    if (this.#hasResponse) this.#context.res = response
    return response
  }

  /** `next()` of the plugin. */
  #startNext(): Promise<void> {
    if (this.isForwarded) return Promise.reject(new Error('next() called multiple times'))
    if (this.#isOver) return Promise.reject(new Error('the call of the plugin has ended'))
    this.isForwarded = true
    return (this.#forwarding = this.#forward())
  }

  async #forward(): Promise<void> {
    const changes = this.#context.changes()
    if (changes !== undefined) {
      const change = await changes
      if (this.#isOver) throw new Error('the call of the plugin has ended')
      this.#apply(() => this.#target.changeRequest(change))
    }
    this.#plugin.end?.(this)
    await this.#target.next()
    if (this.#isOver) return
    this.#hasResponse = true
    this.#context.receive()
    this.#plugin.begin?.(this)
  }

  #apply(change: () => void): void {
    try {
      change()
    } catch (error) {
      this.#fatal = error
      throw error
    }
  }

  async #finish(returned: Response | void): Promise<Answer | undefined> {
    if (!this.isForwarded) return toAnswer(returned ?? this.#ownResponse())
    if (!this.#hasResponse) {
      this.#forwarding?.catch(() => undefined)
      if (returned === undefined) throw new Error('the plugin returned before next() did; await next()')
      return toAnswer(returned)
    }
    const change = await this.#context.end()
    if (change !== undefined && !this.#isOver) this.#apply(() => this.#target.changeResponse(change))
    return undefined
  }

  #ownResponse(): Response {
    const { created } = this.#context
    if (created?.finalized === true) return created.res
    throw new Error('Context is not finalized. Did you forget to return a Response object or `await next()`?')
  }
}

async function toAnswer(response: Response): Promise<Answer> {
  return { status: response.status, headers: [...response.headers].flat(), body: new Uint8Array(await response.arrayBuffer()) }
}
