import type { Context, MiddlewareHandler, Next } from 'hono'
import type { Exchange } from './exchange.ts'
import { LocalResponse, type AnswerInit } from './answer.ts'

/** Type of `c.var` for policies. Values that policies pass to each other are slots of the exchange; see slot.ts. */
export interface PolicyVariables {
  exchange: Exchange
}
export type PolicyEnv = { Variables: PolicyVariables }

/** The part of Hono's Context that policies may use; Hono's own and LightContext both have it. */
export type PolicyContext = Pick<Context<PolicyEnv>, 'var' | 'get' | 'text' | 'json' | 'body' | 'redirect'>

/**
 * A Hono middleware: request side, `await next()`, response side. After `next()` the head is in `exchange.response`, from the
 * upstream or from the gateway. A policy responds itself by returning a Response instead of calling `next()`, and denies by throwing a
 * ProxyError. One that has no response side returns `next()` without awaiting it.
 */
export interface Policy {
  (c: PolicyContext, next: Next): Promise<Response | void>
  /** Set by `withSides`: a chain calls these instead of the middleware. */
  readonly sides?: Sides<unknown>
}

/** A policy that never responds itself, in two parts. If neither returns a promise, the chain runs it synchronously. */
export interface Sides<T> {
  /** Throws a ProxyError to deny. Its result, awaited if it is a promise, is passed to the response side. */
  readonly request?: (exchange: Exchange) => T | Promise<T>
  /** Runs on every response, error responses included, if the request side has succeeded. */
  readonly response?: (exchange: Exchange, left: T) => void
}

/**
 * Makes middleware from two sides.
 *
 * @example
 * const stamp = withSides({ response: ({ response }) => response?.headers.set('x-stamp', '1') })
 */
export function withSides<T>({ request, response }: Sides<T>): Policy {
  const around = async (c: PolicyContext, next: Next): Promise<void> => {
    const { exchange } = c.var
    const left = await request?.(exchange)
    await next()
    response?.(exchange, left as T)
  }
  return Object.assign(around, { sides: { request, response } as Sides<unknown> })
}

/** Fails to compile when a policy could no longer be mounted in a Hono app. */
export type MountablePolicy = Policy extends MiddlewareHandler<PolicyEnv> ? Policy : never

type Headers = Readonly<Record<string, string | string[]>>
/** Hono's answers are Responses that carry the type of their body for its RPC client. */
// oxlint-disable-next-line typescript/no-explicit-any -- its own type is not exported
type Answer = any

/**
 * The context on the request path. It costs one object per request; a Response is created only if a policy responds itself.
 * `implements` ties its members to Hono's.
 */
export class LightContext implements PolicyContext {
  readonly exchange: Exchange

  constructor(exchange: Exchange) {
    this.exchange = exchange
  }

  get var(): PolicyVariables {
    return this
  }

  get(name: 'exchange'): Exchange {
    return this[name]
  }

  body(data: string | ArrayBuffer | Uint8Array | Blob | ReadableStream | null, init?: AnswerInit, headers?: Headers): Answer {
    return new LocalResponse(data, init, headers)
  }

  text(text: string, init?: AnswerInit, headers?: Headers): Answer {
    return new LocalResponse(text, init, headers, 'text/plain; charset=UTF-8')
  }

  json(value: unknown, init?: AnswerInit, headers?: Headers): Answer {
    return new LocalResponse(JSON.stringify(value), init, headers, 'application/json')
  }

  redirect(location: string | URL, status: number = 302): Answer {
    return new LocalResponse(null, status, { location: String(location) })
  }
}
