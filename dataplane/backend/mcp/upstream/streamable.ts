import { createBodyHold } from '../../../request/exchange/held.ts'
import { readBody } from '../../../http/body.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { McpFailure } from '../message/failure.ts'
import { headersFor, isSessionId } from '../message/headers.ts'
import { INTERNAL_ERROR } from '../message/rpc.ts'
import { emptyEvents, readEvents } from '../sse/source.ts'
import type { Target } from '../target/target.ts'
import { callTarget, messageLimit } from './call.ts'
import { isRepeatable, type Link, type LinkAnswer, type LinkState } from './link.ts'

/** Link to a target that speaks Streamable HTTP: each message is a POST. */
export function streamableLink(target: Target, state: LinkState): Link {
  return {
    async post(context, text, { method, name, id, params }) {
      const isInitialize = method === 'initialize'
      const headers = headersFor(context.exchange.request.headers, {
        sessionId: state.sessionId,
        version: versionFor(state, isInitialize),
        method,
        name,
        params,
        hasBody: true,
      })
      const { response, endpoint } = await callTarget(context, target, {
        method: 'POST',
        headers,
        body: Buffer.from(text),
        message: { method, name },
        endpoint: state.endpoint,
        isRepeatable: isRepeatable(method),
      })
      if (isInitialize && response.status === 200) remember(target, state, response, endpoint)
      const isRequest = id !== undefined && method !== undefined
      const answer = toAnswer(response, isRequest, messageLimit(context))
      if (isRequest && answer.kind === 'refused' && response.status < 300) throw unreadable(target, response)
      return answer
    },
    async listen(context, lastEventId) {
      const headers = headersFor(context.exchange.request.headers, {
        sessionId: state.sessionId,
        version: state.version,
        accept: 'text/event-stream',
        hasBody: false,
      })
      if (lastEventId !== undefined) headers.append('last-event-id', lastEventId)
      const { response } = await callTarget(context, target, { method: 'GET', headers, endpoint: state.endpoint })
      return toAnswer(response, true, messageLimit(context))
    },
    async end(context) {
      const { sessionId, version } = state
      if (sessionId === undefined) return
      state.sessionId = undefined
      const headers = headersFor(context.exchange.request.headers, { sessionId, version, hasBody: false })
      const { response } = await callTarget(context, target, { method: 'DELETE', headers, endpoint: state.endpoint })
      await readBody(response.body, MAX_END_BYTES).catch(() => undefined)
    },
  }
}

/** `initialize` names the revision in its body. */
const versionFor = ({ version }: LinkState, isInitialize: boolean): string | null | undefined => (version !== undefined && isInitialize ? null : version)

/** The error for a successful response that contains no message, such as a page of other software. */
function unreadable({ name }: Target, { headers, body }: ResponseHead): McpFailure {
  body?.cancel()
  const type = headers.get('content-type')
  const what = `responded with ${type === undefined ? 'no content type' : `content type ${type}`}${body === undefined ? ' and no body' : ''}`
  return McpFailure.rpc(INTERNAL_ERROR, `failed to send message: an upstream ${what}`, { status: 500, detail: `failed to send message: ${name} ${what}` })
}

const MAX_END_BYTES = 64 * 1024

function remember(target: Target, state: LinkState, { headers }: ResponseHead, endpoint: string): void {
  const sessionId = headers.get('mcp-session-id')
  if (sessionId !== undefined && !isSessionId(sessionId))
    throw McpFailure.rpc(INTERNAL_ERROR, 'failed to send message: an upstream responded with a session id that is not visible ASCII', {
      status: 500,
      detail: `failed to send message: ${target.name} responded with a session id that is not visible ASCII`,
    })
  if (sessionId !== undefined) state.sessionId = sessionId
  if (target.isPinned) state.endpoint = endpoint
}

/** Classifies a response (mcp.md §3.3). Messages other than requests have no response message, so any 2xx accepts them. */
function toAnswer(response: ResponseHead, isRequest: boolean, limit: number): LinkAnswer {
  const { status, headers, body } = response
  if (status === 202 || status === 204 || (!isRequest && status >= 200 && status <= 299)) {
    body?.cancel()
    return { kind: 'accepted' }
  }
  const type = (headers.get('content-type') ?? '').toLowerCase()
  if (status === 200) {
    // A stream may end with nothing in it, so that the client polls (SEP-1699).
    if (type.startsWith('text/event-stream')) return { kind: 'events', events: body === undefined ? emptyEvents : readEvents(body, limit, createBodyHold()) }
    if (type.startsWith('application/json') && body !== undefined) return { kind: 'json', body }
  }
  return { kind: 'refused', response }
}
