import { createRoute } from '@hono/zod-openapi'
import { randomUUID } from 'node:crypto'
import type { Context } from 'hono'
import { streamSSE } from 'hono/streaming'
import { tryRequest, tryResult, type TryRequest, type TryResult } from '#api/management/requests.ts'
import { indexPolicies } from '../../config/merge.ts'
import { effectiveFrontend, proxyProtocolSettings } from '../../gateway/frontend.ts'
import type { TraceReport } from '../../observe/trace/tracer.ts'

import type { ConsoleApp, ConsoleContext } from './context.ts'
import { events, failed, json } from './responses.ts'
import { sendRequest, type ResponseListener, type TryTarget } from './send.ts'

/** Time for the trace after the response. */
const TRACE_GRACE_MS = 1000
const MAX_BODY = 1024 * 1024

const tryRoute = createRoute({
  method: 'post',
  path: '/api/v1/try',
  summary: 'Sends a request through a listener of this gateway, and returns the response with its trace',
  description: 'The client address that policies see is that of the gateway itself. The upstream receives the request like any other.',
  request: { body: { required: true, content: { 'application/json': { schema: tryRequest } } } },
  responses: {
    200: json(tryResult, 'The response, or why there is none.'),
    400: failed('The request cannot be sent.'),
    404: failed('There is no such listener.'),
    429: failed('Too many traces are waiting.'),
  },
})

const tryStreamRoute = createRoute({
  method: 'post',
  path: '/api/v1/try/stream',
  summary: 'Sends a request through a listener of this gateway, and streams the response',
  description:
    'Events: `head` with `status`, `headers` and `headMs`; `data` with the next `text` of the body; `end` with a TryResult whose body is empty; `failure` with `error`. The request is aborted when the client disconnects.',
  request: tryRoute.request,
  responses: { 200: events('The events.'), 400: failed('The request cannot be sent.'), 404: failed('There is no such listener.') },
})

export function registerTry(app: ConsoleApp, context: ConsoleContext): void {
  app.openapi(tryStreamRoute, (c) => {
    const request = c.req.valid('json')
    const target = findTarget(context, request.listener)
    if (target === undefined) return c.json({ error: unknownListener(request.listener) }, 404)
    const problem = problemOf(request)
    if (problem !== undefined) return c.json({ error: problem }, 400)
    return streamTry(c, context, target, request)
  })
  app.openapi(tryRoute, async (c) => {
    const request = c.req.valid('json')
    const target = findTarget(context, request.listener)
    if (target === undefined) return c.json({ error: unknownListener(request.listener) }, 404)
    const problem = problemOf(request)
    if (problem !== undefined) return c.json({ error: problem }, 400)
    try {
      return c.json(await tryOut(context, target, request), 200)
    } catch (error) {
      if (error instanceof RangeError) return c.json({ error: error.message }, 429)
      // Names and values of headers that HTTP does not allow.
      if (error instanceof TypeError) return c.json({ error: error.message }, 400)
      throw error
    }
  })
}

const unknownListener = (key: string): string => `listener ${JSON.stringify(key)}: there is no HTTP or HTTPS listener with this key`

/** Why a request cannot be tried out: it has no response that could be shown, or is too long. */
function problemOf({ method, headers, body }: TryRequest): string | undefined {
  if (/^(?:CONNECT|TRACE)$/i.test(method)) return `method: ${method.toUpperCase()} cannot be tried out; use another method`
  const upgrade = headers.find(([name]) => /^(?:upgrade|http2-settings)$/i.test(name))
  if (upgrade !== undefined) return `headers: ${upgrade[0]} cannot be tried out, because the connection does not return to HTTP; remove it`
  return Buffer.byteLength(body) > MAX_BODY ? 'body: is longer than 1 MiB' : undefined
}

function streamTry(c: Context, context: ConsoleContext, target: TryTarget, request: TryRequest): Response {
  return streamSSE(c, async (stream) => {
    const left = new AbortController()
    stream.onAbort(() => left.abort())
    const text = new TextDecoder()
    const write = (event: string, data: object): void => void stream.writeSSE({ event, data: JSON.stringify(data) })
    try {
      const result = await tryOut(context, target, request, {
        onHead: (status, headers, headMs) => write('head', { status, headers, headMs }),
        onData: (chunk) => write('data', { text: text.decode(chunk, { stream: true }) }),
        signal: left.signal,
      })
      // The bytes of a character that the end of the body cut off.
      const rest = text.decode()
      if (rest !== '') write('data', { text: rest })
      await stream.writeSSE({ event: 'end', data: JSON.stringify({ ...result, response: result.response && { ...result.response, body: '' } }) })
    } catch (error) {
      const isKnown = error instanceof RangeError || error instanceof TypeError
      await stream.writeSSE({ event: 'failure', data: JSON.stringify({ error: isKnown ? error.message : 'internal error' }) })
    }
  })
}

function findTarget({ snapshot }: ConsoleContext, key: string): TryTarget | undefined {
  const { listeners, binds, policies } = snapshot()
  const listener = listeners.get(key)
  const bind = listener && binds.get(listener.bind)
  if (listener === undefined || bind === undefined || (listener.protocol !== 'HTTP' && listener.protocol !== 'HTTPS')) return undefined
  const proxyProtocol = proxyProtocolSettings(effectiveFrontend(indexPolicies(policies), listener.gateway))
  return { host: bind.addresses?.[0] ?? '127.0.0.1', port: bind.port, isTls: listener.protocol === 'HTTPS', hasProxyHeader: proxyProtocol !== undefined }
}

async function tryOut(context: ConsoleContext, target: TryTarget, request: TryRequest, listener?: ResponseListener): Promise<TryResult> {
  const id = randomUUID()
  const abort = new AbortController()
  const tracing = context.trace({ id, untilEnd: true }, request.timeoutMs + TRACE_GRACE_MS, abort.signal)
  let timer: NodeJS.Timeout | undefined
  try {
    const { response, error } = await sendRequest(target, { ...request, headers: [...request.headers, ['x-proxy-trace-id', id]] }, listener)
    // A request that no listener accepted is never traced.
    timer = setTimeout(() => abort.abort(), TRACE_GRACE_MS)
    const report = await tracing
    return { response, error, trace: report === undefined ? null : toTrace(report) }
  } finally {
    clearTimeout(timer)
    abort.abort()
  }
}

function toTrace({ status, reason, error, steps }: TraceReport): NonNullable<TryResult['trace']> {
  return {
    status,
    reason: reason ?? null,
    error: error ?? null,
    steps: steps.map(({ detail, ...step }) => ({ ...step, ...(detail && { detail: { ...detail } }) })),
  }
}
