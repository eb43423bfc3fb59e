import type { Context, MiddlewareHandler, Next } from 'hono'
import type { Exchange } from './exchange.ts'
import { LocalResponse, type AnswerInit } from './answer.ts'

/** What policies find in `c.var`. Values that they leave for each other go to `exchange.set`. */
export interface PolicyVariables {
  exchange: Exchange
}
export type PolicyEnv = { Variables: PolicyVariables }

/** The part of Hono's Context that policies may use; Hono's own and LightContext both have it. */
export type PolicyContext = Pick<Context<PolicyEnv>, 'var' | 'get' | 'text' | 'json' | 'body' | 'redirect'>

/**
 * A Hono middleware: request side, `await next()`, response side. After `next()` the head is in `exchange.response`, from the
 * upstream or made here. A policy answers itself by returning a Response instead of calling `next()`, and denies by throwing a
 * ProxyError. One that has no response side returns `next()` without awaiting it.
 */
export type Policy = (c: PolicyContext, next: Next) => Promise<Response | void>

/** Fails to compile when a policy could no longer be mounted in a Hono app. */
export type MountablePolicy = Policy extends MiddlewareHandler<PolicyEnv> ? Policy : never

type Headers = Readonly<Record<string, string | string[]>>
/** Hono's answers are Responses that remember their body's type for its RPC client. */
// oxlint-disable-next-line typescript/no-explicit-any
type Answer = any

/**
 * The context on the request path. It costs one object per request; a Response is made only when a policy answers.
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
