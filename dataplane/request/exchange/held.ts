import { readBody, type Body } from '../../http/body.ts'
import { BodyHold } from '../../http/budget.ts'
import type { HeaderList } from '../../http/headers.ts'
import { ProxyError } from './error.ts'
import type { Exchange } from './exchange.ts'

/** The response to requests whose bodies exceed the budget (traffic.md §10, maxHeldBytes). */
const createError = (): ProxyError => new ProxyError('HELD_BYTES')

/** A hold of its own, for bytes that are not released with an exchange. */
export function createBodyHold(): BodyHold {
  return new BodyHold(createError)
}

/** The hold of an exchange, released by `releaseBodies`. Forks share the hold of the original. */
export function bodyHold(exchange: Exchange): BodyHold {
  const owner = exchange.origin ?? exchange
  return (owner.held ??= createBodyHold())
}

const released = createBodyHold()
released.release()

/** Releases what was buffered for an exchange; called when it is finished. */
export function releaseBodies(exchange: Exchange): void {
  if (exchange.held === undefined) exchange.held = released
  else exchange.held.release()
}

/**
 * Like `readBody`, within the budget of buffered bodies. The bytes count until the exchange is finished. Without an exchange, or if it
 * is finished already, they count until they are read. Rejects also with a ProxyError HELD_BYTES.
 */
export function readHeldBody(
  exchange: Exchange | undefined,
  body: Body | undefined,
  limit: number,
): Promise<{ bytes: Buffer; trailers: HeaderList | undefined }> {
  if (exchange !== undefined && !bodyHold(exchange).isReleased) return readBody(body, limit, bodyHold(exchange))
  const hold = createBodyHold()
  return readBody(body, limit, hold).finally(() => hold.release())
}
