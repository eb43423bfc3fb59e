import type { Body } from '../../../http/body.ts'
import type { BodyHold } from '../../../http/budget.ts'
import { MessageOutline } from './outline.ts'
import { MAX_EVENT_CHARS, SseParser, type LargePart, type ParserSink, type SseEvent } from './parser.ts'

/** Receives events. Exactly one of onEnd and onError is called, as the last; none after `cancel`. */
export interface EventSink {
  onEvent(event: SseEvent): void
  /** Receives events above `largeFrom` in parts. Without it, a response above the limit of the source is replaced by an error. */
  onPart?(part: LargePart): void
  /** Length in characters from which events are passed in parts. Default: the limit of the source. */
  readonly largeFrom?: number
  onEnd(): void
  onError(error: Error): void
}

/** Events of an upstream as they arrive, with pause and resume like a `Body`. */
export interface EventSource {
  start(sink: EventSink): void
  pause(): void
  resume(): void
  cancel(): void
}

/** A stream that has ended without any event. */
export const emptyEvents: EventSource = { start: (sink) => sink.onEnd(), pause() {}, resume() {}, cancel() {} }

/**
 * The events in the body of an upstream's response. Events are at most `limit` characters long, unless the sink receives them in parts.
 * `hold` counts what is buffered of an event; it is released at the end.
 */
export function readEvents(body: Body, limit = MAX_EVENT_CHARS, hold?: BodyHold): EventSource {
  let isDone = false
  const finish = (): void => {
    isDone = true
    hold?.release()
  }
  const cancel = (): void => {
    if (isDone) return
    finish()
    body.cancel()
  }
  return {
    start(sink) {
      const onPart = sink.onPart === undefined ? replaceLarge(sink, limit) : (part: LargePart) => sink.onPart?.(part)
      const open: ParserSink = {
        onEvent: (event) => {
          if (!isDone) sink.onEvent(event)
        },
        onPart: (part) => {
          if (!isDone) onPart(part)
        },
      }
      const parser = new SseParser(open, sink.onPart === undefined ? limit : sink.largeFrom)
      body.start({
        onData(chunk) {
          if (isDone) return
          parser.push(chunk)
          if (isDone) return
          const error = hold?.resize(parser.buffered)
          if (error === undefined) return
          cancel()
          sink.onError(error)
        },
        onEnd() {
          if (isDone) return
          finish()
          sink.onEnd()
        },
        onError(error) {
          if (isDone) return
          finish()
          sink.onError(error)
        },
      })
    },
    pause: () => body.pause(),
    resume: () => body.resume(),
    cancel,
  }
}

/** Replaces responses above the limit by an error, so that only their call fails. Drops other messages. */
function replaceLarge(sink: EventSink, limit: number): (part: LargePart) => void {
  let outline = new MessageOutline()
  return (part) => {
    if (part.kind === 'start') outline = new MessageOutline()
    else if (part.kind === 'data') outline.push(part.text)
    else if (!outline.hasMethod) sink.onEvent({ data: tooLarge(outline.id, limit) })
  }
}

/** The JSON-RPC error in place of a response. `id` is JSON. */
function tooLarge(id: string | undefined, limit: number): string {
  const message = `the response of an upstream is larger than ${limit} characters, the limit for messages that the gateway reads`
  return `{"jsonrpc":"2.0","id":${isId(id) ? id : 'null'},"error":{"code":-32603,"message":${JSON.stringify(message)}}}`
}

function isId(text: string | undefined): boolean {
  try {
    const id: unknown = JSON.parse(text ?? 'null')
    return typeof id === 'string' || typeof id === 'number'
  } catch {
    return false
  }
}
