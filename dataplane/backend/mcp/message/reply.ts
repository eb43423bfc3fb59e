import type { Body } from '../../../http/body.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { EventStream, type StreamFeeder } from '../sse/body.ts'
import type { LargePart, SseEvent } from '../sse/parser.ts'
import type { EventSource } from '../sse/source.ts'

/** Events from this length pass in parts where nothing reads them: they are not buffered, and a slow client slows the server down. */
export const PASSED_CHARS = 256 * 1024

/** Output of the messages of a reply. */
export interface EventOutput {
  /** The client can resume the stream at the id of an event, or poll for the rest. */
  readonly isResumable: boolean
  write(event: SseEvent): void
  /** Writes a part of a large event. Undefined if other messages could come between the parts. */
  part?(part: LargePart): void
  /** A JSON-RPC message. */
  send(text: string): void
  end(): void
  /** Ends the output with an error. */
  fail(error: Error): void
}

/** The reply to a client's message, independent of the transport. */
export type Reply =
  /** A notification or a response was accepted. */
  | { readonly kind: 'accepted' }
  /** The target's HTTP response, unchanged. */
  | { readonly kind: 'relay'; readonly response: ResponseHead }
  /** One message. `isUnread`: it was not reported to logs and metrics. */
  | { readonly kind: 'message'; readonly body: Body; readonly sessionId?: string | undefined; readonly isUnread?: boolean }
  /** A stream of messages, the response to the request last. */
  | { readonly kind: 'stream'; readonly feed: (out: EventOutput) => StreamFeeder; readonly sessionId?: string | undefined }

/** A stream of messages that are available already. */
export function streamOf(texts: readonly string[], sessionId?: string): Reply {
  const feed = (out: EventOutput): StreamFeeder => {
    for (const text of texts) out.send(text)
    out.end()
    return {}
  }
  return { kind: 'stream', feed, sessionId }
}

/** The stream of a reply as the body of a response. */
export function openStream(feed: (out: EventOutput) => StreamFeeder, onClose: () => void): EventStream {
  let feeder: StreamFeeder = {}
  let isClosed = false
  const stream = new EventStream({
    onPressure: (isBehind) => feeder.onPressure?.(isBehind),
    onClose: () => {
      isClosed = true
      feeder.onClose?.()
      onClose()
    },
  })
  feeder = feed(stream)
  if (isClosed) feeder.onClose?.()
  return stream
}

/** The upstream streams that make up one reply: paused, resumed and cancelled together. */
export class Flow implements StreamFeeder {
  readonly #sources = new Set<EventSource>()
  #isBehind = false
  #isClosed = false

  get isClosed(): boolean {
    return this.#isClosed
  }

  add(source: EventSource): void {
    if (this.#isClosed) return source.cancel()
    this.#sources.add(source)
    if (this.#isBehind) source.pause()
  }

  remove(source: EventSource): void {
    this.#sources.delete(source)
  }

  onPressure(isBehind: boolean): void {
    this.#isBehind = isBehind
    for (const source of this.#sources) {
      if (isBehind) source.pause()
      else source.resume()
    }
  }

  onClose(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const source of this.#sources) source.cancel()
    this.#sources.clear()
  }
}
