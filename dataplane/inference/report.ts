import type { ProcessingResponse } from '#gen/proto/envoy/service/ext_proc/v3/external_processor_pb.js'
import type { Exchange } from '../exchange/exchange.ts'
import { ObservedBody } from '../http/observe.ts'
import { bodyMessage, mutateHead, responseHeaders } from '../policy/ext-proc/messages.ts'
import type { Session } from '../policy/ext-proc/session.ts'
import { METADATA, type Choice } from './picker.ts'

const SERVED = 'x-gateway-destination-endpoint-served'
/** The client waits for the picker's changes to the head, but not for long: the answer is there. */
const TIMEOUT_MS = 1_000

/**
 * Tells the picker how its request was answered, and by which endpoint; it may change the response's head, and sees the body as it
 * passes. Whatever happens to the picker now, the client gets its response.
 */
export async function report(exchange: Exchange, { session }: Choice): Promise<void> {
  const { response, endpoint } = exchange
  if (session === undefined || session.isOver || session.failure !== undefined || session.immediate !== undefined) return
  if (response === undefined || endpoint === undefined) return session.finish()
  session.ignore('response')
  const reply = await askAboutHead(session, exchange, endpoint)
  if (reply === undefined) return
  const { response: answer } = reply
  mutateHead(exchange, 'response', answer.case === 'responseHeaders' ? answer.value.response?.headerMutation : undefined)
  if (response.body === undefined || response.upgraded !== undefined) return session.finish()
  let isKeepingUp = true
  response.body = new ObservedBody(response.body, {
    onData: (chunk) => {
      // A picker that does not keep up sees no more of it; it must not slow the answer down, nor fill the memory.
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

async function askAboutHead(session: Session, exchange: Exchange, endpoint: string): Promise<ProcessingResponse | undefined> {
  const { response } = exchange
  if (response === undefined) return undefined
  const asked = session.ask(responseHeaders(response), { [METADATA]: { [SERVED]: endpoint } })
  const timer = setTimeout(() => session.abandon(new Error(`no reply within ${TIMEOUT_MS} ms`)), TIMEOUT_MS)
  try {
    return await asked
  } catch (error) {
    session.abandon(error instanceof Error ? error : new Error(String(error)))
    return undefined
  } finally {
    clearTimeout(timer)
  }
}
