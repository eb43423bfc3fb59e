import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { ProxyError } from '../exchange/error.ts'
import type { HeaderList } from '../http/headers.ts'

/** Header of requests to destinations that clients choose. Its value is a mark of this gateway. */
export const LOOP_HEADER = 'x-proxy-loop'

/**
 * Recognizes requests that a dynamicForwardProxy backend sent and that come back (traffic.md §13). A mark is a nonce and its keyed hash: nobody
 * without the key can make one or tell of which gateway it is. Replicas with a common key recognize each other's.
 */
export class LoopMark {
  /** Value for the requests of this process. */
  readonly value: string
  readonly #key: Buffer

  /** `secret`: common to the replicas of a gateway; undefined: a random one. */
  constructor(secret: Buffer | undefined) {
    this.#key = createHash('sha256')
      .update('loop mark')
      .update(secret ?? randomBytes(32))
      .digest()
    const nonce = randomBytes(12).toString('base64url')
    this.value = `${nonce}.${this.#hash(nonce)}`
  }

  /**
   * Removes marks from a request.
   * @throws ProxyError LOOP (508) if one of them is ours
   */
  check(headers: HeaderList): void {
    const values = headers.getAll(LOOP_HEADER)
    if (values.length === 0) return
    if (values.some((value) => this.#isOurs(value))) throw new ProxyError('LOOP')
    headers.remove(LOOP_HEADER)
  }

  #isOurs(value: string): boolean {
    const [nonce = '', hash = ''] = value.split('.')
    const expected = Buffer.from(this.#hash(nonce))
    const given = Buffer.from(hash)
    return given.length === expected.length && timingSafeEqual(given, expected)
  }

  #hash(nonce: string): string {
    return createHmac('sha256', this.#key).update(nonce).digest('base64url').slice(0, 22)
  }
}
