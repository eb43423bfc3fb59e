import type { Context, MiddlewareHandler, Next } from 'hono'
import type { PluginHooks } from '#api/plugin/index.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import { changeRequest, changeResponse } from './changes.ts'
import { DirectContext } from './direct-context.ts'
import { listHooks, type HookName } from './hooks/run.ts'
import type { FromPlugin } from './guest/messages.ts'
import { PluginError } from './plugin-error.ts'

type Answer = Pick<Extract<FromPlugin, { type: 'answer' }>, 'status' | 'headers' | 'body'>

/** Checks of running steps in the time of one timeout: a step may take that part longer. */
const CHECKS = 8
const MIN_CHECK_MS = 5

/** Timeouts of steps. One timer for all of them, because most steps end before a timer of their own would be worth its cost. */
class Deadlines {
  readonly #timeoutMs: number
  /** In the order of their start. */
  readonly #running = new Set<DirectCall>()
  #check = 0
  #timer: NodeJS.Timeout | undefined

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  add(call: DirectCall): void {
    call.startedAtCheck = this.#check
    this.#running.add(call)
    this.#timer ??= setInterval(() => this.#expire(), Math.max(MIN_CHECK_MS, this.#timeoutMs / CHECKS)).unref()
  }

  remove(call: DirectCall): void {
    this.#running.delete(call)
  }

  #expire(): void {
    this.#check++
    const checks = Math.ceil(this.#timeoutMs / Math.max(MIN_CHECK_MS, this.#timeoutMs / CHECKS))
    for (const call of this.#running) {
      if (this.#check - call.startedAtCheck <= checks) break
      this.#running.delete(call)
      call.expire(new PluginError('timeout', `no result in ${this.#timeoutMs} ms`))
    }
    if (this.#running.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** Calls of a plugin in this thread, without messages. For plugins that do not read bodies. */
export class DirectPlugin {
  /** Hooks that the plugin has. */
  readonly hooks: ReadonlySet<HookName>
  readonly middleware: MiddlewareHandler
  readonly deadlines: Deadlines
  readonly describe: (error: unknown) => string
  /** Calls that run. */
  busy = 0

  /** @param describe the message of an error of the plugin for logs */
  constructor(hooks: PluginHooks, timeoutMs: number, describe: (error: unknown) => string) {
    this.hooks = new Set(listHooks(hooks))
    this.middleware = hooks.request ?? ((_, next) => next())
    this.deadlines = new Deadlines(timeoutMs)
    this.describe = describe
  }
}

/** One request in a plugin. Promises are few: without Hono's context, a call has one besides those of the plugin and of `next()`. */
export class DirectCall {
  /** Whether the plugin called `next()`. */
  isForwarded = false
  /** Number of the check of deadlines before the step that runs. */
  startedAtCheck = 0
  readonly #plugin: DirectPlugin
  readonly #exchange: Exchange
  readonly #context: DirectContext
  readonly #next: Next
  #forwarding: Promise<void> | undefined = undefined
  #hasResponse = false
  #isOver = false
  /** An error of the gateway, not of the plugin. */
  #fatal: unknown = undefined
  #resolve: ((answer: Answer | undefined) => void) | undefined = undefined
  #reject: ((error: unknown) => void) | undefined = undefined

  constructor(plugin: DirectPlugin, exchange: Exchange, next: Next) {
    this.#plugin = plugin
    this.#exchange = exchange
    this.#next = next
    this.#context = new DirectContext(exchange)
  }

  /** Runs the plugin, and the rest of the chain as its `next()`. Resolves with its own response, if it has one. Rejects with a PluginError, or an error of the gateway. */
  run(): Promise<Answer | undefined> {
    const { middleware, deadlines } = this.#plugin
    this.#plugin.busy++
    return new Promise<Answer | undefined>((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      try {
        const pending = middleware(this.#context as unknown as Context, () => this.#startNext())
        if (!this.isForwarded) deadlines.add(this)
        if (pending instanceof Promise) pending.then(this.#onReturn, this.#onThrow)
        else this.#onReturn(pending)
      } catch (thrown) {
        this.#onThrow(thrown)
      }
    })
  }

  expire(error: PluginError): void {
    if (!this.#isOver) this.#end(() => this.#reject?.(error))
  }

  #end(settle: () => void): void {
    this.#isOver = true
    this.#plugin.busy--
    this.#plugin.deadlines.remove(this)
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
    const error = this.#fatal ?? new PluginError('failed', this.#plugin.describe(thrown))
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
    const { deadlines } = this.#plugin
    const changes = this.#context.changes()
    if (changes !== undefined) {
      const change = await changes
      if (this.#isOver) throw new Error('the call of the plugin has ended')
      this.#apply(() => changeRequest(this.#exchange, change))
    }
    deadlines.remove(this)
    await this.#next()
    this.#hasResponse = true
    this.#context.receive()
    if (!this.#isOver) deadlines.add(this)
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
      // The chain ends before its request does.
      await this.#forwarding?.catch(() => undefined)
      throw new Error('the plugin returned before next() did; await next()')
    }
    const { response } = this.#exchange
    const change = await this.#context.end()
    if (change !== undefined && !this.#isOver && response !== undefined && response.upgraded === undefined && response.status >= 200)
      this.#apply(() => changeResponse(this.#exchange, response, change))
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
