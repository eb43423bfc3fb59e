import { capturedBodies, captureLimits } from '../../../request/exchange/captured-bodies.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { BufferBody } from '../../../http/body.ts'
import type { HeaderList } from '../../../http/headers.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { ObservedBody } from '../../../http/observe.ts'
import type { Prepared } from '../request/chat.ts'
import { contentCoding, decodeBytes } from '../../../http/coding.ts'
import { isChatFormat, type ChatFormat } from '../common/types.ts'
import { createCollector } from '../replay/index.ts'

/** Bytes of the coded body that is decoded at most. */
const MAX_CODED_BYTES = 1024 * 1024

/** Captures the bodies of one LLM request for the ledger: what the guards let through, never what they reject (traffic.md §12.2). */
export class BodyCapture {
  readonly #exchange: Exchange
  readonly #limit: number

  private constructor(exchange: Exchange, limit: number) {
    this.#exchange = exchange
    this.#limit = limit
  }

  /** undefined if the ledger stores no bodies. */
  static of(exchange: Exchange, registry: object): BodyCapture | undefined {
    const limit = captureLimits.get(registry)
    return limit === undefined ? undefined : new BodyCapture(exchange, limit)
  }

  /** Captures the request of an attempt, instead of that of an earlier one. */
  request({ draft: { body }, conversion }: Prepared): void {
    if (conversion === undefined || !Array.isArray(body)) return capturedBodies.set(this.#exchange, undefined)
    const pieces: Buffer[] = []
    let left = this.#limit
    for (const piece of body as readonly Buffer[]) {
      if (left <= 0) break
      pieces.push(piece.subarray(0, left))
      left -= piece.length
    }
    capturedBodies.set(this.#exchange, { request: textOf(Buffer.concat(pieces)) })
  }

  /** Captures a response of a provider or the cache. Its body is replaced by one that is observed if it is a stream. */
  async response(response: ResponseHead, { conversion, isStreaming }: Prepared): Promise<void> {
    const { body, status, headers } = response
    const captured = capturedBodies.get(this.#exchange)
    const format = conversion?.entry.format
    if (captured === undefined || body === undefined || status < 200 || status > 299 || this.#exchange.isLocalAnswer) return
    if (format === undefined || !isChatFormat(format)) return
    if (isStreaming && !(body instanceof BufferBody)) return this.#observe(response, format)
    if (!(body instanceof BufferBody)) return
    const { bytes } = body
    const coding = contentCoding(headers)
    const decoded = coding === undefined ? bytes : await decode(bytes, coding)
    if (decoded !== undefined) captured.response = isStream(headers) ? collectAll(decoded, format, this.#limit) : textOf(decoded.subarray(0, this.#limit))
  }

  #observe(response: ResponseHead, format: ChatFormat): void {
    const { body } = response
    const captured = capturedBodies.get(this.#exchange)
    if (body === undefined || captured === undefined) return
    const collector = createCollector(format, this.#limit)
    response.body = new ObservedBody(body, {
      onData: (chunk) => collector.push(chunk),
      onClose: () => (captured.response = collector.text()),
    })
  }
}

function collectAll(stream: Buffer, format: ChatFormat, limit: number): string | undefined {
  const collector = createCollector(format, limit)
  collector.push(stream)
  return collector.text()
}

const isStream = (headers: HeaderList): boolean => /^text\/event-stream\b/i.test(headers.get('content-type') ?? '')

/** undefined for an unknown coding, and for a body that is too large. */
async function decode(bytes: Buffer, coding: string): Promise<Buffer | undefined> {
  if (bytes.length > MAX_CODED_BYTES) return undefined
  try {
    return await decodeBytes(bytes, coding, MAX_CODED_BYTES)
  } catch {
    return undefined
  }
}

/** A character that was cut is replaced. */
const textOf = (bytes: Buffer): string => bytes.toString().toWellFormed()
