import { createBodyHold } from '../../../request/exchange/held.ts'
import type { Body, BodySink } from '../../../http/body.ts'
import { formatEvent, formatPart, type LargePart, type SseEvent } from './parser.ts'

/** A source of an event stream. */
export interface StreamFeeder {
  /** The reader fell behind (pause) or caught up (resume). */
  onPressure?(isBehind: boolean): void
  /** The reader disconnected or the stream ended. Called once. */
  onClose?(): void
}

/** Intermediaries close idle connections, most after 30 s or more. */
const KEEP_ALIVE_MS = 15_000
const KEEP_ALIVE = Buffer.from(': keep-alive\n\n')
/** Limit of queued bytes from feeders that cannot pause: the stream fails at the next event. A single event may be larger. */
const MAX_QUEUED_BYTES = 4 * 1024 * 1024

/** An event stream for a client. Queues events for a slow reader up to a limit and the budget of buffered bodies, then fails. */
export class EventStream implements Body {
  readonly length = undefined
  readonly isResumable = true
  readonly #feeder: StreamFeeder
  readonly #keepAliveMs: number
  #sink: BodySink | undefined
  #queue: Buffer[] = []
  #queuedBytes = 0
  /** Counts the queue. */
  readonly #hold = createBodyHold()
  #isPaused = false
  #isBehind = false
  /** An event was started by `part` and is incomplete. */
  #isInEvent = false
  #state: 'open' | 'ending' | 'closed' = 'open'
  #failure: Error | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(feeder: StreamFeeder = {}, keepAliveMs = KEEP_ALIVE_MS) {
    this.#feeder = feeder
    this.#keepAliveMs = keepAliveMs
  }

  get isClosed(): boolean {
    return this.#state === 'closed'
  }

  write(event: SseEvent): void {
    // An event whose source broke off is ended, so that this one is read on its own.
    const end = this.#isInEvent ? '\n\n' : ''
    this.#isInEvent = false
    this.#push(Buffer.from(`${end}${formatEvent(event)}`))
  }

  /** Writes a part of a large event. No other event may be written between its parts. */
  part(part: LargePart): void {
    this.#isInEvent = part.kind !== 'end'
    this.#push(Buffer.from(formatPart(part)))
  }

  /** A JSON-RPC message as an event. */
  send(text: string): void {
    this.write({ data: text })
  }

  end(): void {
    if (this.#state !== 'open') return
    this.#state = 'ending'
    this.#flow()
  }

  /** Fails the stream after the queued events. */
  fail(error: Error): void {
    this.#failure ??= error
    this.end()
  }

  start(sink: BodySink): void {
    if (this.#state === 'closed') return
    this.#sink = sink
    this.#timer = setTimeout(() => this.#keepAlive(), this.#keepAliveMs)
    this.#flow()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#flow()
  }

  cancel(): void {
    this.#close()
  }

  #push(frame: Buffer): void {
    if (this.#state !== 'open') return
    if (this.#queuedBytes > MAX_QUEUED_BYTES) return this.#break(new Error('the client does not read its event stream'))
    this.#queue.push(frame)
    this.#queuedBytes += frame.length
    this.#timer?.refresh()
    this.#flow()
    // What passed to the reader is not counted.
    const excess = this.#queuedBytes > 0 ? this.#hold.resize(this.#queuedBytes) : undefined
    if (excess !== undefined) this.#break(excess)
  }

  #break(error: Error): void {
    const sink = this.#sink
    this.#close()
    sink?.onError(error)
  }

  #keepAlive(): void {
    // A slow reader receives queued events when it resumes, so no comment is needed.
    if (this.#queue.length === 0 && !this.#isPaused && !this.#isInEvent) this.#push(KEEP_ALIVE)
    this.#timer?.refresh()
  }

  #flow(): void {
    const sink = this.#sink
    while (sink !== undefined && !this.#isPaused && this.#queue.length > 0) {
      const chunk = this.#queue.length === 1 ? this.#queue[0] : Buffer.concat(this.#queue)
      this.#queue = []
      this.#queuedBytes = 0
      this.#hold.resize(0)
      if (chunk !== undefined) sink.onData(chunk)
    }
    this.#reportPressure(this.#queuedBytes > 0)
    if (sink === undefined || this.#isPaused || this.#state !== 'ending') return
    this.#close()
    if (this.#failure === undefined) sink.onEnd(undefined)
    else sink.onError(this.#failure)
  }

  #reportPressure(isBehind: boolean): void {
    if (isBehind === this.#isBehind) return
    this.#isBehind = isBehind
    this.#feeder.onPressure?.(isBehind)
  }

  #close(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#queue = []
    this.#hold.release()
    clearTimeout(this.#timer)
    this.#feeder.onClose?.()
  }
}
