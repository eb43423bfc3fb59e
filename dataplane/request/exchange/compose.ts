import { grpcStatusOf } from '#api/errors.ts'
import { toResponseHead } from './answer.ts'
import { LightContext, type Policy } from './context.ts'
import { ProxyError, toErrorResponse, toProxyError } from './error.ts'
import type { Exchange } from './exchange.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { TraceStep } from './trace.ts'

/** The end of a chain: puts a response head into `exchange.response`, or throws a ProxyError. */
export type Terminal = (exchange: Exchange) => Promise<void> | void

/** A composed chain. It never rejects; afterwards `exchange.response` is set. */
export type Chain = (exchange: Exchange) => Promise<void> | void

/**
 * Composes policies and the end of the chain into one function, once per config. An error thrown by a policy or by the end becomes
 * a response at that place: policies whose request side was reached see it after `next()`, like a response of the upstream, and
 * the others never run (traffic.md §5, Response).
 */
export function compose(policies: readonly Policy[], terminal: Terminal): Chain {
  if (policies.length === 0) return (exchange) => runAlone(terminal, exchange)
  return (exchange) => new Run(policies, terminal, exchange).run(0)
}

function runAlone(terminal: Terminal, exchange: Exchange): Promise<void> | void {
  try {
    return terminal(exchange)?.catch((thrown: unknown) => respondWithError(exchange, thrown))
  } catch (thrown) {
    respondWithError(exchange, thrown)
  }
}

/**
 * One request on its way through a chain; also the context that its policies see. Policies with sides run in loops, on the way in
 * and on the way out; promises are created only by sides that return one, by plain middleware and by the end of the chain.
 */
class Run extends LightContext {
  readonly #policies: readonly Policy[]
  readonly #terminal: Terminal
  /** Index of the innermost policy that was reached. */
  #reached = -1
  /** Results of request sides for their response sides, by index. */
  #left: unknown[] | undefined = undefined

  constructor(policies: readonly Policy[], terminal: Terminal, exchange: Exchange) {
    super(exchange)
    this.#policies = policies
    this.#terminal = terminal
  }

  /** Runs the rest of the chain from `index`. Runs response sides down to `outermost`; the caller runs those below. */
  run(index: number, outermost = index): Promise<void> | void {
    const { exchange } = this
    const policies = this.#policies
    for (let at = index; at < policies.length; at++) {
      const policy = policies[at] as Policy
      this.#reached = at
      const step = exchange.trace?.add('policy', policy.name)
      if (policy.sides === undefined) return this.#settle(this.#around(policy, at, step), at - 1, outermost)
      try {
        const left = policy.sides.request?.(exchange)
        if (left instanceof Promise) return this.#resume(left, at, outermost, step)
        if (left !== undefined) (this.#left ??= [])[at] = left
      } catch (thrown) {
        fail(exchange, thrown, step)
        return this.#respond(at - 1, outermost)
      }
    }
    this.#reached = policies.length
    try {
      return this.#settle(this.#terminal(exchange), policies.length - 1, outermost)
    } catch (thrown) {
      respondWithError(exchange, thrown)
      this.#respond(policies.length - 1, outermost)
    }
  }

  /** Continues after a request side that returned a promise. */
  #resume(left: Promise<unknown>, at: number, outermost: number, step: TraceStep | undefined): Promise<void> {
    return left.then(
      (value) => {
        ;(this.#left ??= [])[at] = value
        return this.run(at + 1, outermost)
      },
      (thrown: unknown) => {
        fail(this.exchange, thrown, step)
        this.#respond(at - 1, outermost)
      },
    )
  }

  /** Runs plain middleware, with the rest of the chain as its `next`. */
  async #around(policy: Policy, at: number, step: TraceStep | undefined): Promise<void> {
    const { exchange } = this
    try {
      const answer = await policy(this, async () => {
        if (this.#reached > at && exchange.response !== undefined) throw new Error('a policy called next() twice')
        return this.run(at + 1)
      })
      if (answer === undefined) {
        if (exchange.response === undefined) throw new Error('a policy neither answered nor called next()')
        return
      }
      if (step !== undefined) step.detail = { answered: answer.status }
      replaceResponse(exchange, toResponseHead(answer))
      exchange.isLocalAnswer = true
    } catch (thrown) {
      fail(exchange, thrown, step)
    }
  }

  #settle(pending: Promise<void> | void, innermost: number, outermost: number): Promise<void> | void {
    if (pending === undefined) return this.#respond(innermost, outermost)
    return pending.then(
      () => this.#respond(innermost, outermost),
      (thrown: unknown) => {
        respondWithError(this.exchange, thrown)
        this.#respond(innermost, outermost)
      },
    )
  }

  #respond(innermost: number, outermost: number): void {
    const { exchange } = this
    for (let at = innermost; at >= outermost; at--) {
      try {
        this.#policies[at]?.sides?.response?.(exchange, this.#left?.[at])
      } catch (thrown) {
        const name = this.#policies[at]?.name
        const step = exchange.trace?.steps.findLast((one) => one.kind === 'policy' && one.name === name)
        fail(exchange, thrown, step)
      }
    }
  }
}

function fail(exchange: Exchange, thrown: unknown, step: TraceStep | undefined): void {
  respondWithError(exchange, thrown)
  if (step !== undefined) step.detail = { refused: exchange.error?.code ?? '' }
}

/** Turns an error of the request path into the response of the exchange. The only place that does. */
export function respondWithError(exchange: Exchange, thrown: unknown): void {
  const error = isClientGone(exchange) ? new ProxyError('CLIENT_CLOSED', { cause: thrown }) : toProxyError(thrown)
  exchange.error = error
  exchange.isLocalAnswer = false
  const response = toErrorResponse(error, exchange.request, exchange.errorFormat)
  if (exchange.requestId !== undefined) response.headers.append('x-request-id', exchange.requestId)
  exchange.grpcStatus = response.headers.get('grpc-status')
  replaceResponse(exchange, response)
}

const statusOfCut = { client: '1', upstream: '13', timeout: '4', shutdown: '14' }

/** The status that a gRPC client reports for a response without one (traffic.md §6). */
export function missingGrpcStatus({ cutBy, response }: Pick<Exchange, 'cutBy' | 'response'>): string | undefined {
  if (cutBy !== undefined) return statusOfCut[cutBy]
  // UNKNOWN: a response of gRPC, but for its end.
  return response && String(response.status === 200 ? 2 : grpcStatusOf(response.status))
}

/** Whether the client disconnected: what fails then, fails for this reason. */
const isClientGone = ({ abortReason, cutBy }: Exchange): boolean => abortReason !== undefined && cutBy === 'client'

/** Drops the response of an upstream, so that a policy may call `next()` again for another one. */
export function discardResponse(exchange: Exchange): void {
  const { response, pendingOn } = exchange
  exchange.response = undefined
  response?.body?.cancel()
  if (pendingOn !== undefined) pendingOn.pending--
  exchange.pendingOn = undefined
}

function replaceResponse(exchange: Exchange, response: ResponseHead): void {
  const previous = exchange.response
  exchange.response = response
  previous?.body?.cancel()
  previous?.upgraded?.socket.destroy()
}
