import type { Exchange } from '../../request/exchange/exchange.ts'
import { hostOf, pathOf } from '../../http/message.ts'
import { ownHeaders } from '../../http/own-headers.ts'
import { errorTextOf } from '../telemetry/access-log/fields.ts'
import { redactText } from '../telemetry/redact.ts'
import { RequestTrace, type TraceStep } from '../../request/exchange/trace.ts'

/** Selects a request: all defined members must match. */
export interface TraceFilter {
  /** Prefix of the path. */
  readonly path?: string | undefined
  readonly host?: string | undefined
  readonly method?: string | undefined
  /** Value of the request header `x-proxy-trace-id`, which is removed from the request. */
  readonly id?: string | undefined
  /** The report also has the steps after the response head, until the response is complete. */
  readonly untilEnd?: boolean | undefined
}

export interface TraceReport {
  readonly method: string
  readonly path: string
  readonly host: string
  readonly status: number
  /** Code of the error that the gateway responded with. */
  readonly reason?: string
  /** Field `error` of the access log: the error without credentials. */
  readonly error?: string
  readonly steps: readonly TraceStep[]
}

/** Each waiting trace costs a comparison per request. */
export const WAITING_LIMIT = 16

interface Waiter {
  readonly filter: TraceFilter
  readonly resolve: (report: TraceReport | undefined) => void
  /** The report of a response that is not complete. */
  partial: TraceReport | undefined
}

/** Records single requests for clients of the admin endpoint. Costs one comparison per request while no trace is waiting. */
export class Tracer {
  readonly #waiting = new Set<Waiter>()

  get isArmed(): boolean {
    return this.#waiting.size > 0
  }

  /** Resolves with the report of the next request that matches, or undefined after the timeout or when `signal` aborts. Throws a RangeError if too many traces are waiting. */
  wait(filter: TraceFilter, timeoutMs: number, signal?: AbortSignal): Promise<TraceReport | undefined> {
    if (this.#waiting.size >= WAITING_LIMIT) throw new RangeError(`${WAITING_LIMIT} traces are waiting already: end one of them`)
    return new Promise((resolve) => {
      const waiter: Waiter = {
        filter,
        partial: undefined,
        resolve(report) {
          clearTimeout(timer)
          resolve(report)
        },
      }
      const giveUp = (): void => {
        this.#waiting.delete(waiter)
        waiter.resolve(waiter.partial)
      }
      const timer = setTimeout(giveUp, timeoutMs)
      timer.unref()
      signal?.addEventListener('abort', giveUp, { once: true })
      this.#waiting.add(waiter)
    })
  }

  /** Handles an exchange and records it if a trace is waiting for it. */
  async run(exchange: Exchange, handle: (exchange: Exchange) => Promise<void> | void): Promise<void> {
    const waiter = [...this.#waiting].find(({ filter }) => matches(exchange, filter))
    if (waiter === undefined) return handle(exchange)
    this.#waiting.delete(waiter)
    const trace = new RequestTrace(exchange.startedAtMs)
    exchange.trace = trace
    await handle(exchange)
    const { receivedMethod, receivedTarget, receivedAuthority, response, error } = exchange
    const status = response?.status ?? 0
    trace.add('answer', String(status), { by: error !== undefined ? 'gateway, an error' : exchange.isLocalAnswer ? 'gateway' : 'upstream' })
    const report: TraceReport = {
      method: receivedMethod,
      path: redactText(pathOf(receivedTarget)),
      host: redactText(receivedAuthority),
      status,
      ...(error && { reason: error.code, error: errorTextOf(exchange) ?? '' }),
      steps: redactSteps(trace.steps),
    }
    if (waiter.filter.untilEnd !== true) return waiter.resolve(report)
    waiter.partial = report
    trace.onFinish = () => waiter.resolve(report)
  }
}

/** What policies noted may have texts of plugins, upstreams and expressions. */
function redactSteps(steps: TraceReport['steps']): TraceReport['steps'] {
  const redactDetail = (value: string | number | boolean): string | number | boolean => (typeof value === 'string' ? redactText(value) : value)
  return steps.map(({ name, detail, ...step }) => ({
    ...step,
    name: redactText(name),
    ...(detail && { detail: Object.fromEntries(Object.entries(detail).map(([key, value]) => [key, redactDetail(value)])) }),
  }))
}

function matches({ request }: Exchange, { path, host, method, id }: TraceFilter): boolean {
  if (id !== undefined && request.headers.get(ownHeaders.traceId) !== id) return false
  if (path !== undefined && !pathOf(request.target).startsWith(path)) return false
  if (host !== undefined && hostOf(request.authority).toLowerCase() !== host.toLowerCase()) return false
  return method === undefined || request.method === method
}
