import { respondWithError } from '../../request/exchange/compose.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { readHeldBody } from '../../request/exchange/held.ts'
import { BufferBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import type { RequestHead, ResponseHead } from '../../http/message.ts'
import type { OnGone } from '../../backend/mcp/session/sharing.ts'

/** The responses of a client, which were a part of one request to another worker or replica. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024
const head = {
  method: 'POST',
  target: '/',
  scheme: 'http',
  authority: 'worker',
  version: 'HTTP/1.1',
  upgrade: undefined,
  acceptsTrailers: false,
} as const

/** The request that carries a message to another worker or replica. */
export function messageRequest(text: string): RequestHead {
  const body = new BufferBody(text)
  return { ...head, headers: new HeaderList(['content-length', String(body.length)]), body }
}

/** Responds to a request with a message as the handler does. Never rejects. */
export async function receiveMessage(exchange: Exchange, handle: ((text: string, onGone: OnGone) => Promise<ResponseHead>) | undefined): Promise<void> {
  try {
    const { bytes } = await readHeldBody(undefined, exchange.request.body, MAX_MESSAGE_BYTES)
    exchange.response = await handle?.(bytes.toString(), (callback) => exchange.onAbort(callback))
  } catch (error) {
    respondWithError(exchange, error)
  }
}
