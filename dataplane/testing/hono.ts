import { Hono } from 'hono'
import { LocalResponse, toResponseHead } from '../request/exchange/answer.ts'
import { respondWithError } from '../request/exchange/compose.ts'
import type { MountablePolicy, PolicyEnv } from '../request/exchange/context.ts'
import { Exchange } from '../request/exchange/exchange.ts'
import { BufferBody, readBody } from '../http/body.ts'
import { HeaderList } from '../http/headers.ts'
import type { ResponseHead } from '../http/message.ts'
import { testConnection, testRequest } from './exchange.ts'

/** Result of one request. `exchange.request` is the request as the upstream would have received it. */
interface PolicyResult {
  readonly response: Response
  readonly exchange: Exchange
  readonly isForwarded: boolean
}

export interface PolicyApp {
  /** Sends a request, like `fetch`, through a plain Hono app with the policies mounted. */
  request(url: string, init?: RequestInit): Promise<PolicyResult>
}

/**
 * Mounts policies in a plain Hono app, before an upstream that answers 200 `upstream` with the given headers, or throws.
 * Proves that policies are Hono middleware; every test of a policy goes through here.
 */
export function mountPolicies(
  policies: readonly MountablePolicy[],
  upstream: { headers?: Record<string, string>; error?: Error; prepare?: (exchange: Exchange) => void } = {},
): PolicyApp {
  return {
    async request(url, init) {
      let isForwarded = false
      let exchange: Exchange | undefined
      const app = new Hono<PolicyEnv>()
      app.use(async (c, next) => {
        const { protocol, host, pathname, search } = new URL(c.req.url)
        const headers = new HeaderList([...c.req.raw.headers].flat())
        const scheme = protocol === 'https:' ? 'https' : 'http'
        exchange = new Exchange(testConnection, testRequest({ method: c.req.method, target: pathname + search, scheme, authority: host, headers }), 0)
        upstream.prepare?.(exchange)
        c.set('exchange', exchange)
        await next()
        // Response policies edit the head in the exchange: send that, even if Hono has a response already.
        if (exchange.response === undefined) return
        c.res = undefined
        c.res = await toResponse(exchange.response)
      })
      for (const policy of policies)
        app.use(async (c, next) => {
          const answer = await policy(c, next)
          // Hono's next() returns the context, and so do policies that return next().
          if (!(answer instanceof Response)) return
          c.var.exchange.response = toResponseHead(answer)
          c.var.exchange.isLocalAnswer = true
          return answer
        })
      app.all('*', (c) => {
        isForwarded = true
        if (upstream.error !== undefined) throw upstream.error
        const headers = HeaderList.from(Object.entries(upstream.headers ?? {}))
        c.var.exchange.response = { status: 200, headers, body: new BufferBody('upstream'), upgraded: undefined }
        return c.body(null)
      })
      app.onError((error, c) => {
        respondWithError(c.var.exchange, error)
        return c.body(null)
      })
      const response = await app.request(url, init)
      if (exchange === undefined) throw new Error('the app was not reached')
      return { response, exchange, isForwarded }
    },
  }
}

async function toResponse({ status, headers: list, body }: ResponseHead): Promise<Response> {
  const { bytes } = await readBody(body, Infinity)
  const headers: Record<string, string[]> = {}
  for (const [name, value] of list) (headers[name] ??= []).push(value)
  return new LocalResponse(bytes.length === 0 ? null : bytes, status, headers)
}
