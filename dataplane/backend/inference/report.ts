import type { ProcessingResponse } from '#gen/proto/envoy/service/ext_proc/v3/external_processor_pb.js'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { ObservedBody } from '../../http/observe.ts'
import { bodyMessage, mutateHead, responseHeaders } from '../../policy/ext-proc/messages.ts'
import type { ProcessorSession } from '../../policy/ext-proc/session.ts'
import { METADATA, type PickedEndpoints } from './picker.ts'

const SERVED = 'x-gateway-destination-endpoint-served'
/** Limits how long the response waits for the picker's changes to its head. */
const TIMEOUT_MS = 1_000

/**
 * Reports the response and the endpoint that served it to the picker, which may change the head and receives a copy of the body.
 * Failures of the picker do not affect the response.
 */
export async function reportResponse(exchange: Exchange, { session }: PickedEndpoints): Promise<void> {
  const { response, endpoint } = exchange
  if (session === undefined || session.isOver || session.failure !== undefined || session.immediate !== undefined) return
  if (response === undefined || endpoint === undefined) return session.finish()
  session.ignore('response')
  const reply = await sendHead(session, exchange, endpoint)
  if (reply === undefined) return
  const { response: content } = reply
  mutateHead(exchange, 'response', content.case === 'responseHeaders' ? content.value.response?.headerMutation : undefined)
  if (response.body === undefined || response.upgraded !== undefined) return session.finish()
  let isKeepingUp = true
  response.body = new ObservedBody(response.body, {
    onData: (chunk) => {
      // Stop sending to a picker that does not keep up, so that it neither delays the response nor fills the memory.
      if (isKeepingUp && !session.send(bodyMessage('response', chunk, false))) {
        isKeepingUp = false
        session.finish()
      }
    },
    onClose: (error) => {
      if (error !== undefined) return session.abandon(error)
      if (isKeepingUp) session.send(bodyMessage('response', Buffer.alloc(0), true))
      session.finish()
    },
  })
}

async function sendHead(session: ProcessorSession, exchange: Exchange, endpoint: string): Promise<ProcessingResponse | undefined> {
  const { response } = exchange
  if (response === undefined) return undefined
  const reply = session.call(responseHeaders(response), { [METADATA]: { [SERVED]: endpoint } })
  const timer = setTimeout(() => session.abandon(new Error(`no reply within ${TIMEOUT_MS} ms`)), TIMEOUT_MS)
  try {
    return await reply
  } catch (error) {
    session.abandon(error instanceof Error ? error : new Error(String(error)))
    return undefined
  } finally {
    clearTimeout(timer)
  }
}
