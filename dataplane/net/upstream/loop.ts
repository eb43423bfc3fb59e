import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { ProxyError } from '../../request/exchange/error.ts'
import type { HeaderList } from '../../http/headers.ts'
import type { LoopTrail, RequestHead } from '../../http/message.ts'
import { ownHeaders } from '../../http/own-headers.ts'
import { encodeLiteral } from '../../http/http2/fields.ts'

/** Header of all requests to upstreams. Its values are marks of the gateways that a request came through. */
export const LOOP_HEADER = ownHeaders.loop
/** How often a request may return to this gateway: a route may lead to another one, and a token endpoint may be behind it. */
const MAX_RETURNS = 3
/** Other gateways that a request may come through. */
const MAX_OTHERS = 8
const markForm = /^[\w-]{16}\.[\w-]{22}$/

/** The trail of calls for no request in particular, and of mirrored requests, which may multiply: they may return once. */
export const returnsOnce = (trail?: LoopTrail): LoopTrail => ({ passes: Math.max(trail?.passes ?? 0, MAX_RETURNS - 1), others: trail?.others ?? '' })

/** The trail of requests to destinations that clients choose: they may not return. */
export const returnsNever = (trail?: LoopTrail): LoopTrail => ({ passes: MAX_RETURNS, others: trail?.others ?? '' })

/**
 * Marks the requests of this gateway, and recognizes those that come back (traffic.md §13). A mark is a nonce and a keyed hash of it and of the number
 * of passes: nobody without the key can make one, count its passes, or tell of which gateway it is. Replicas with a common key recognize each other's.
 */
export class LoopMarks {
  readonly #key: Buffer
  readonly #nonce = randomBytes(12).toString('base64url')
  /** The field of a request by the number of its passes, as HTTP/1.1 and HTTP/2 write it. */
  readonly #lines: readonly string[]
  readonly #literals: readonly string[]
  readonly #values: readonly string[]

  /** `secret`: common to the replicas of a gateway; undefined: a random one. */
  constructor(secret: Buffer | undefined) {
    this.#key = createHash('sha256')
      .update('loop mark')
      .update(secret ?? randomBytes(32))
      .digest()
    this.#values = Array.from({ length: MAX_RETURNS + 1 }, (_, passes) => `${this.#nonce}.${this.#hash(this.#nonce, passes)}`)
    this.#lines = this.#values.map((value) => `${LOOP_HEADER}: ${value}\r\n`)
    this.#literals = this.#values.map((value) => encodeLiteral(LOOP_HEADER, value))
  }

  /** The field line for a request. */
  line(trail: LoopTrail | undefined): string {
    return trail === undefined || trail.others === '' ? (this.#lines[trail?.passes ?? 0] ?? '') : `${LOOP_HEADER}: ${this.#valueOf(trail)}\r\n`
  }

  /** The field for a request, encoded by HPACK. */
  literal(trail: LoopTrail | undefined): string {
    return trail === undefined || trail.others === '' ? (this.#literals[trail?.passes ?? 0] ?? '') : encodeLiteral(LOOP_HEADER, this.#valueOf(trail))
  }

  /**
   * Moves the marks of a received request from its headers to its trail.
   * @throws ProxyError LOOP (508) if it came through this gateway, or through others, too often
   */
  receive(request: Pick<RequestHead, 'loop'> & { readonly headers: HeaderList }): void {
    const { headers } = request
    if (!headers.has(LOOP_HEADER)) return
    let passes = 0
    const others: string[] = []
    const marks = headers.getAll(LOOP_HEADER).flatMap((value) => value.split(/[ \t]*,[ \t]*/).filter((mark) => markForm.test(mark)))
    if (marks.length > 1 + MAX_OTHERS) throw new ProxyError('LOOP')
    for (const mark of marks) {
      const own = this.#passesOf(mark)
      passes = Math.max(passes, own)
      if (own === 0) others.push(mark)
    }
    if (passes > MAX_RETURNS || others.length > MAX_OTHERS) throw new ProxyError('LOOP')
    headers.remove(LOOP_HEADER)
    if (passes > 0 || others.length > 0) request.loop = { passes, others: others.join(', ') }
  }

  #valueOf({ passes, others }: LoopTrail): string {
    return `${this.#values[passes] ?? ''}, ${others}`
  }

  /** How often the request came through this gateway until it got the mark; 0: the mark is none of this gateway. */
  #passesOf(mark: string): number {
    const [nonce = '', hash = ''] = mark.split('.')
    for (let passes = 0; passes <= MAX_RETURNS; passes++) if (timingSafeEqual(Buffer.from(this.#hash(nonce, passes)), Buffer.from(hash))) return passes + 1
    return 0
  }

  #hash(nonce: string, passes: number): string {
    return createHmac('sha256', this.#key).update(`${nonce} ${passes}`).digest('base64url').slice(0, 22)
  }
}
