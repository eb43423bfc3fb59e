import type { Exchange } from '../exchange/exchange.ts'
import { hostOf, pathOf } from '../http/message.ts'
import { errorTextOf } from '../telemetry/access-log/fields.ts'
import { RequestTrace, type TraceStep } from '../exchange/trace.ts'

/** Which request is wanted: all that are given must hold. */
export interface TraceFilter {
  /** Prefix of the path. */
  readonly path?: string | undefined
  readonly host?: string | undefined
  readonly method?: string | undefined
  /** Value of the request header `x-proxy-trace-id`, which is taken out of the request. */
  readonly id?: string | undefined
}

export interface TraceReport {
  readonly method: string
  readonly path: string
  readonly host: string
  readonly status: number
  /** Code of the error, where the gateway itself answered because of an error. */
  readonly reason?: string
  /** `error` of the access log: what went wrong, credentials left out. */
  readonly error?: string
  readonly steps: readonly TraceStep[]
}

const TRACE_ID_HEADER = 'x-proxy-trace-id'
/** Who waits costs a look at every request. */
const WAITING_LIMIT = 16

interface Waiter {
  readonly filter: TraceFilter
  readonly resolve: (report: TraceReport | undefined) => void
}

/** Records single requests for whoever asks on the admin port. While nobody asks it costs one comparison per request. */
export class Tracer {
  readonly #waiting = new Set<Waiter>()

  get isArmed(): boolean {
    return this.#waiting.size > 0
  }

  /** Resolves with the first request from now on that fits, once its answer's head is there; undefined when none came in time. Throws when too many wait. */
  wait(filter: TraceFilter, timeoutMs: number): Promise<TraceReport | undefined> {
    if (this.#waiting.size >= WAITING_LIMIT) throw new RangeError(`${WAITING_LIMIT} traces are waiting already: end one of them`)
    return new Promise((resolve) => {
      const waiter: Waiter = {
        filter,
        resolve(report) {
          clearTimeout(timer)
          resolve(report)
        },
      }
      const timer = setTimeout(() => {
        this.#waiting.delete(waiter)
        resolve(undefined)
      }, timeoutMs)
      timer.unref()
      this.#waiting.add(waiter)
    })
  }

  /** Handles an exchange and records it if somebody waits for it. */
  async run(exchange: Exchange, handle: (exchange: Exchange) => Promise<void> | void): Promise<void> {
    const waiter = [...this.#waiting].find(({ filter }) => fits(exchange, filter))
    if (waiter === undefined) return handle(exchange)
    this.#waiting.delete(waiter)
    exchange.request.headers.remove(TRACE_ID_HEADER)
    const trace = new RequestTrace(exchange.startedAtMs)
    exchange.trace = trace
    await handle(exchange)
    const { receivedMethod, receivedTarget, receivedAuthority, response, error } = exchange
    const status = response?.status ?? 0
    trace.add('answer', String(status), { by: error !== undefined ? 'gateway, an error' : exchange.isLocalAnswer ? 'gateway' : 'upstream' })
    waiter.resolve({
      method: receivedMethod,
      path: pathOf(receivedTarget),
      host: receivedAuthority,
      status,
      ...(error && { reason: error.code, error: errorTextOf(exchange) ?? '' }),
      steps: trace.steps,
    })
  }
}

function fits({ request }: Exchange, { path, host, method, id }: TraceFilter): boolean {
  if (id !== undefined && request.headers.get(TRACE_ID_HEADER) !== id) return false
  if (path !== undefined && !pathOf(request.target).startsWith(path)) return false
  if (host !== undefined && hostOf(request.authority).toLowerCase() !== host.toLowerCase()) return false
  return method === undefined || request.method === method
}
