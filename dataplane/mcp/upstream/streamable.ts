import { readBody } from '../../http/body.ts'
import type { ResponseHead } from '../../http/message.ts'
import { headersFor, isSessionId } from '../headers.ts'
import { readEvents } from '../sse/source.ts'
import type { Target } from '../target.ts'
import { callTarget } from './call.ts'
import { isRepeatable, type Link, type LinkAnswer, type LinkState } from './link.ts'

/** A target that speaks Streamable HTTP: each message is a POST. */
export function streamableLink(target: Target, state: LinkState): Link {
  return {
    async post(context, text, { method, name, id }) {
      const isInitialize = method === 'initialize'
      const headers = headersFor(context.exchange.request.headers, { sessionId: state.sessionId, method, name, hasBody: true })
      const { response, endpoint } = await callTarget(context, target, {
        method: 'POST',
        headers,
        body: Buffer.from(text),
        endpoint: state.endpoint,
        isRepeatable: isRepeatable(method),
      })
      if (isInitialize && response.status === 200) remember(target, state, response, endpoint)
      return toAnswer(response, id !== undefined && method !== undefined)
    },
    async listen(context, lastEventId) {
      const headers = headersFor(context.exchange.request.headers, { sessionId: state.sessionId, accept: 'text/event-stream', hasBody: false })
      if (lastEventId !== undefined) headers.append('last-event-id', lastEventId)
      const { response } = await callTarget(context, target, { method: 'GET', headers, endpoint: state.endpoint })
      return toAnswer(response, true)
    },
    async end(context) {
      if (state.sessionId === undefined) return
      const headers = headersFor(context.exchange.request.headers, { sessionId: state.sessionId, hasBody: false })
      const { response } = await callTarget(context, target, { method: 'DELETE', headers, endpoint: state.endpoint })
      await readBody(response.body, MAX_FAREWELL_BYTES).catch(() => undefined)
    },
  }
}

const MAX_FAREWELL_BYTES = 64 * 1024

function remember(target: Target, state: LinkState, { headers }: ResponseHead, endpoint: string): void {
  const sessionId = headers.get('mcp-session-id')
  if (sessionId !== undefined && isSessionId(sessionId)) state.sessionId = sessionId
  if (target.isPinned) state.endpoint = endpoint
}

/** How a server may answer (mcp.md §3.3). What is no request has no answer, whatever comes with a status of success. */
function toAnswer(response: ResponseHead, isAsked: boolean): LinkAnswer {
  const { status, headers, body } = response
  if (status === 202 || status === 204 || (!isAsked && status >= 200 && status <= 299)) {
    body?.cancel()
    return { kind: 'accepted' }
  }
  const type = (headers.get('content-type') ?? '').toLowerCase()
  if (status === 200 && body !== undefined) {
    if (type.startsWith('text/event-stream')) return { kind: 'events', events: readEvents(body) }
    if (type.startsWith('application/json')) return { kind: 'json', body }
  }
  return { kind: 'refused', response }
}
