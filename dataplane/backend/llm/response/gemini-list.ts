import type { Body, BodySink } from '../../../http/body.ts'
import { queryOf, type ResponseHead } from '../../../http/message.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { Prepared } from '../request/chat.ts'
import { parseFields, SseScanner, type SseEvent } from '../stream/sse.ts'

/** A stream for a Gemini client that did not ask for server-sent events (`alt=sse`): one list in JSON, which grows with each piece. */
export function asGeminiList(exchange: Exchange, prepared: Prepared | undefined, response: ResponseHead): ResponseHead {
  const { headers, body } = response
  if (prepared?.conversion?.entry.format !== 'gemini' || !prepared.isStreaming || body === undefined) return response
  if (!/^text\/event-stream\b/i.test(headers.get('content-type') ?? '') || isSse(exchange.request.target)) return response
  headers.set('content-type', 'application/json')
  headers.remove('content-length')
  response.body = new ListBody(body)
  return response
}

const isSse = (target: string): boolean => new URLSearchParams(queryOf(target)).getAll('alt').at(-1) === 'sse'

/** Events as the items of a list. */
class ListBody implements Body {
  readonly length = undefined
  readonly #source: Body
  readonly #scanner = new SseScanner()
  #isBegun = false

  constructor(source: Body) {
    this.#source = source
  }

  start(sink: BodySink): void {
    this.#source.start({
      onData: (chunk) => {
        const items = this.#scanner.push(chunk).map((event) => this.#item(event))
        if (items.length > 0) sink.onData(Buffer.from(items.join('')))
      },
      onEnd: (trailers) => {
        const last = this.#scanner.end()
        sink.onData(Buffer.from(`${last === undefined ? '' : this.#item(last)}${this.#isBegun ? '' : '['}]`))
        sink.onEnd(trailers)
      },
      onError: (error) => sink.onError(error),
    })
  }

  pause(): void {
    this.#source.pause()
  }

  resume(): void {
    this.#source.resume()
  }

  cancel(error?: Error): void {
    this.#source.cancel(error)
  }

  #item({ raw }: SseEvent): string {
    const { data = '' } = parseFields(raw)
    if (data.trim() === '') return ''
    const before = this.#isBegun ? ',\r\n' : '['
    this.#isBegun = true
    return `${before}${data}`
  }
}
