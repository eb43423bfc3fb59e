import { ProxyError, retryHeaders } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { BufferBody } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { ObservedBody } from '../../../http/observe.ts'
import { CancelledError, McpFailure, UpstreamRpcError } from '../message/failure.ts'
import { recordError } from '../record/log.ts'
import { openStream, streamOf, type Reply } from '../message/reply.ts'
import { errorText, toText, type RpcMessage } from '../message/rpc.ts'
import { RefusedError } from '../run/run.ts'

/** A reply as the response of Streamable HTTP (mcp.md §3.3). `onDone` is called when the response is complete or the client disconnected. */
export function toResponse(exchange: Exchange, reply: Reply, onDone: () => void): ResponseHead {
  switch (reply.kind) {
    case 'accepted':
      onDone()
      return { status: 202, headers: new HeaderList(['content-length', '0']), body: undefined, upgraded: undefined }
    case 'relay':
      return relay(reply.response, onDone)
    case 'message': {
      const { body, sessionId } = reply
      const headers = new HeaderList(['content-type', 'application/json'])
      if (body.length !== undefined) headers.append('content-length', String(body.length))
      if (sessionId !== undefined) headers.append('mcp-session-id', sessionId)
      return { status: 200, headers, body: new ObservedBody(body, { onClose: onDone }), upgraded: undefined }
    }
    case 'stream': {
      // `timeouts.request` bounds the time to the response head, not the length of a stream (mcp.md §9).
      exchange.deadlineAtMs = undefined
      const headers = new HeaderList(['content-type', 'text/event-stream', 'cache-control', 'no-cache'])
      if (reply.sessionId !== undefined) headers.append('mcp-session-id', reply.sessionId)
      return { status: 200, headers, body: openStream(reply.feed, onDone), upgraded: undefined }
    }
  }
}

/** The target's response without its session id, which is not the client's. */
export function relay(response: ResponseHead, onDone: () => void): ResponseHead {
  const { headers, body } = response
  headers.remove('mcp-session-id')
  if (body === undefined) onDone()
  return { ...response, body: body && new ObservedBody(body, { onClose: onDone }) }
}

/** The response to a failed request; undefined if the error did not originate in MCP. */
export function failureResponse(exchange: Exchange, error: unknown, message: RpcMessage | undefined): ResponseHead | undefined {
  if (error instanceof CancelledError) return toResponse(exchange, streamOf([]), () => undefined)
  if (error instanceof RefusedError) return relay(error.response, () => undefined)
  if (error instanceof UpstreamRpcError) return json(200, toText({ ...error.rpc, id: message?.id }))
  if (!(error instanceof McpFailure)) return undefined
  exchange.error = new ProxyError('MCP_FAILED', { detail: error.detail, cause: error })
  const { rpc, status, allowed } = error
  if (rpc === undefined) return text(status, error.message, allowed)
  recordError(exchange, rpc.code, error.detail)
  const response = json(
    message?.method !== undefined && message.id === undefined && status === 200 ? 400 : status,
    errorText(message?.id, rpc.code, error.message, rpc.data),
  )
  for (const [name, value] of Object.entries(retryHeaders(status, error))) response.headers.append(name, value)
  return response
}

function json(status: number, content: string): ResponseHead {
  const body = new BufferBody(content)
  return { status, headers: new HeaderList(['content-type', 'application/json', 'content-length', String(body.length)]), body, upgraded: undefined }
}

function text(status: number, content: string, allowed: string | undefined): ResponseHead {
  const body = new BufferBody(content)
  const headers = new HeaderList(['content-type', 'text/plain', 'content-length', String(body.length)])
  if (allowed !== undefined) headers.append('allow', allowed)
  return { status, headers, body, upgraded: undefined }
}
