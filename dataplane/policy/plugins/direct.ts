import type { MiddlewareHandler, Next } from 'hono'
import type { PluginHooks } from '#api/plugin/index.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import type { HeaderList } from '../../http/headers.ts'
import { changeRequest, changeResponse, isChangeable } from './changes.ts'
import type { SeenRequest, SeenResponse } from './guest/fetch-objects.ts'
import type { RequestChange, ResponseChange } from './guest/messages.ts'
import type { Callee, PluginCall, Target } from './guest/plugin-call.ts'
import { listHooks, type HookName } from './hooks/run.ts'
import { PluginError } from './plugin-error.ts'

/** Checks of running steps in the time of one timeout: a step may take that part longer. */
const CHECKS = 8
const MIN_CHECK_MS = 5

/** Timeouts of steps. One timer for all of them, because most steps end before a timer of their own would be worth its cost. */
class Deadlines {
  readonly #timeoutMs: number
  /** With the number of the check before their start, in the order of it. */
  readonly #running = new Map<PluginCall, number>()
  #check = 0
  #timer: NodeJS.Timeout | undefined

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  add(call: PluginCall): void {
    this.#running.set(call, this.#check)
    this.#timer ??= setInterval(() => this.#expire(), Math.max(MIN_CHECK_MS, this.#timeoutMs / CHECKS)).unref()
  }

  remove(call: PluginCall): void {
    this.#running.delete(call)
  }

  #expire(): void {
    this.#check++
    const checks = Math.ceil(this.#timeoutMs / Math.max(MIN_CHECK_MS, this.#timeoutMs / CHECKS))
    for (const [call, startedAtCheck] of this.#running) {
      if (this.#check - startedAtCheck <= checks) break
      this.#running.delete(call)
      call.expire(new PluginError('timeout', `no result in ${this.#timeoutMs} ms`))
    }
    if (this.#running.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** Calls of a plugin in this thread, without messages. For plugins that do not read bodies. */
export class DirectPlugin implements Callee {
  /** Hooks that the plugin has. */
  readonly hooks: ReadonlySet<HookName>
  readonly middleware: MiddlewareHandler
  /** Calls that run. */
  busy = 0
  readonly #deadlines: Deadlines
  readonly #describe: (error: unknown) => string

  /** @param describe the message of an error of the plugin for logs */
  constructor(hooks: PluginHooks, timeoutMs: number, describe: (error: unknown) => string) {
    this.hooks = new Set(listHooks(hooks))
    this.middleware = hooks.request ?? ((_, next) => next())
    this.#deadlines = new Deadlines(timeoutMs)
    this.#describe = describe
  }

  begin(call: PluginCall): void {
    this.#deadlines.add(call)
  }

  end(call: PluginCall): void {
    this.#deadlines.remove(call)
  }

  toError(thrown: unknown): PluginError {
    return new PluginError('failed', this.#describe(thrown))
  }
}

/** URL of a request as plugins see it. */
export function urlOf({ scheme, authority, target }: Exchange['request']): string {
  return `${scheme}://${authority === '' ? 'localhost' : authority}${target.startsWith('/') ? target : '/'}`
}

/** The exchange of a call in this thread. */
export class DirectTarget implements Target {
  readonly streams = undefined
  /** The rest of the chain, once it runs. */
  rest: Promise<void> | undefined
  readonly #next: Next
  readonly #exchange: Exchange
  #listeners = 0

  constructor(exchange: Exchange, next: Next) {
    this.#exchange = exchange
    this.#next = next
  }

  next(): Promise<void> {
    this.#listeners = this.#exchange.listeners
    return (this.rest = this.#next())
  }

  /** Ends the rest of the chain, if it runs: the plugin does not need its response. */
  async cancelRest(): Promise<void> {
    if (this.rest !== undefined) await this.#exchange.cancelRest(this.rest, this.#listeners, new Error('a plugin ended before there was a response'))
  }

  seeRequest(): SeenRequest {
    const { request } = this.#exchange
    const { method, authority, headers, body } = request
    return { method, url: urlOf(request), headers: ['host', authority, ...headers.raw], body: body === undefined ? undefined : true }
  }

  seeResponse(): SeenResponse {
    const { status = 500, headers, body } = this.#exchange.response ?? {}
    return { status: Math.max(status, 200), headers: headers?.raw ?? [], body: body === undefined ? undefined : true }
  }

  get fields(): HeaderList | undefined {
    const { response } = this.#exchange
    return response === undefined || response.upgraded !== undefined || response.status < 200 ? undefined : response.headers
  }

  isChangeable(name: string): boolean {
    return isChangeable(name)
  }

  changeRequest(change: RequestChange): void {
    changeRequest(this.#exchange, change)
  }

  changeResponse(change: ResponseChange): void {
    const { response } = this.#exchange
    if (response !== undefined && this.fields !== undefined) changeResponse(this.#exchange, response, change)
  }
}
