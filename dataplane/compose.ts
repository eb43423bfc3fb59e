import { toResponseHead } from './answer.ts'
import { LightContext, type Policy } from './context.ts'
import { toErrorResponse, toProxyError } from './error.ts'
import type { Exchange } from './exchange.ts'
import type { ResponseHead } from './http/message.ts'
import type { TraceStep } from './trace/trace.ts'

/** The end of a chain: puts a response head into `exchange.response`, or throws a ProxyError. */
export type Terminal = (exchange: Exchange) => Promise<void> | void

/** A composed chain. It never rejects; afterwards `exchange.response` is set. */
export type Chain = (exchange: Exchange) => Promise<void> | void

/**
 * Makes one function of policies and the end of the chain, once per configuration. Whatever a policy or the end throws becomes
 * a response at the place where it was thrown: policies whose request side had been reached see it after `next()`, like one of
 * the upstream, and the others never run (traffic.md §5, Response).
 */
export function compose(policies: readonly Policy[], terminal: Terminal): Chain {
  if (policies.length === 0) return (exchange) => runAlone(terminal, exchange)
  return (exchange) => new Run(policies, terminal, exchange).start()
}

function runAlone(terminal: Terminal, exchange: Exchange): Promise<void> | void {
  try {
    return terminal(exchange)?.catch((thrown: unknown) => respondWithError(exchange, thrown))
  } catch (thrown) {
    respondWithError(exchange, thrown)
  }
}

/** One request on its way through a chain; also the context that its policies see. */
class Run extends LightContext {
  readonly #policies: readonly Policy[]
  readonly #terminal: Terminal
  /** Place of the innermost policy that was reached. */
  #reached = -1

  constructor(policies: readonly Policy[], terminal: Terminal, exchange: Exchange) {
    super(exchange)
    this.#policies = policies
    this.#terminal = terminal
  }

  start(): Promise<void> {
    return this.#dispatch(0)
  }

  async #dispatch(index: number): Promise<void> {
    if (index <= this.#reached) throw new Error('a policy called next() twice')
    this.#reached = index
    const { exchange } = this
    let step: TraceStep | undefined
    try {
      const policy = this.#policies[index]
      if (policy === undefined) {
        await this.#terminal(exchange)
        return
      }
      step = exchange.trace?.add('policy', policy.name)
      const answer = await policy(this, () => this.#dispatch(index + 1))
      if (answer === undefined) {
        if (index === 0 && exchange.response === undefined) throw new Error('a policy neither answered nor called next()')
        return
      }
      if (step !== undefined) step.detail = { answered: answer.status }
      replaceResponse(exchange, toResponseHead(answer))
      exchange.isLocalAnswer = true
    } catch (thrown) {
      respondWithError(exchange, thrown)
      if (step !== undefined) step.detail = { refused: exchange.error?.code ?? '' }
    }
  }
}

/** The one seam where errors of the request path become responses. */
export function respondWithError(exchange: Exchange, thrown: unknown): void {
  const error = toProxyError(thrown)
  exchange.error = error
  exchange.isLocalAnswer = false
  const response = toErrorResponse(error, exchange.request, exchange.errorFormat)
  exchange.grpcStatus = response.headers.get('grpc-status')
  replaceResponse(exchange, response)
}

function replaceResponse(exchange: Exchange, response: ResponseHead): void {
  const previous = exchange.response
  exchange.response = response
  previous?.body?.cancel()
  previous?.upgraded?.socket.destroy()
}
