import type { Body } from '../../http/body.ts'
import { SseParser, type SseEvent } from './parser.ts'

/** Receives events. Exactly one of onEnd and onError is called, as the last; none after `cancel`. */
export interface EventSink {
  onEvent(event: SseEvent): void
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

/** The events in the body of an upstream's response. */
export function readEvents(body: Body): EventSource {
  let isDone = false
  const cancel = (): void => {
    if (isDone) return
    isDone = true
    body.cancel()
  }
  return {
    start(sink) {
      const parser = new SseParser((event) => {
        if (!isDone) sink.onEvent(event)
      })
      const finish = (error?: Error): void => {
        if (isDone) return
        isDone = true
        if (error === undefined) sink.onEnd()
        else sink.onError(error)
      }
      body.start({
        onData(chunk) {
          if (isDone) return
          try {
            parser.push(chunk)
          } catch (thrown) {
            body.cancel()
            finish(thrown instanceof Error ? thrown : new Error(String(thrown)))
          }
        },
        onEnd: () => finish(),
        onError: finish,
      })
    },
    pause: () => body.pause(),
    resume: () => body.resume(),
    cancel,
  }
}
