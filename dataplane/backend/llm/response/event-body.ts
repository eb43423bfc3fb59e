import { ProxyError } from '../../../request/exchange/error.ts'
import { createBodyHold } from '../../../request/exchange/held.ts'
import { failureClass } from '../../../net/upstream/failure-class.ts'
import type { Body, BodySink } from '../../../http/body.ts'
import { StreamRejection, type StreamGuard } from '../guards/index.ts'
import type { ClientEvent, ResponseStream, StreamFacts } from '../common/types.ts'

type Events = readonly ClientEvent[]

/** How a stream ended: completely, cut off by the upstream or an error of it, at a timeout, rejected by a guard, or cancelled by the client. */
type StreamEnd = 'complete' | 'truncated' | 'timeout' | 'rejected' | 'cancelled'

interface EventBodyOptions {
  readonly guard: StreamGuard | undefined
  /** Time (`performance.now()`) at which the stream ends with an error; undefined for no deadline. */
  readonly deadlineAtMs?: number | undefined
  /** Longest pause of the upstream after the first content; undefined for no limit. */
  readonly idleMs?: number | undefined
  /** Called when the first content, reasoning or tool input arrives from the upstream. */
  onContent?(): void
  /** Called once, before the end is sent to the client. `failure`: see `EventBody.failure`, or why a guard could not check the stream. */
  onClose(end: StreamEnd, failure: Error | undefined): void
}

/** Time for an upstream to end the body after the terminator, and for a client to read the error after the deadline, before the connection is closed. */
const LINGER_MS = 1000
/** Received bytes without an event for the client from which they count as buffered. */
const COUNTED_FROM_BYTES = 64 * 1024
const NO_CONTENT = 'the stream had no content within requestTimeout or firstTokenTimeout'

/** The body of a streamed response: passes the upstream's bytes through a ResponseStream and through guards. */
export class EventBody implements Body {
  readonly length = undefined
  readonly #source: Body
  readonly #stream: ResponseStream
  readonly #options: EventBodyOptions
  readonly #guard: StreamGuard | undefined
  /** Bytes for the client that were not written yet. */
  #ready: Buffer[] = []
  /** Chunks from the upstream that arrive while a guard is checking; undefined is the end. */
  #waiting: (Buffer | undefined)[] = []
  readonly #hold = createBodyHold()
  /** Bytes received since the last event that passed to the client: those of an incomplete event, or text that a guard holds back. */
  #unsentBytes = 0
  #sink: BodySink | undefined
  #isStarted = false
  #isPaused = false
  #isGuarding = false
  #hasContent = false
  #isSourceDone = false
  /** Set when the last event for the client is in `#ready`. */
  #end: StreamEnd | undefined
  #isClosed = false
  #linger: NodeJS.Timeout | undefined
  #deadline: NodeJS.Timeout | undefined
  #idle: NodeJS.Timeout | undefined
  #failure: Error | undefined
  /** Why a guard could not check the stream. */
  #guardFailure: Error | undefined
  #onPeeked: (() => void) | undefined

  constructor(source: Body, stream: ResponseStream, options: EventBodyOptions) {
    this.#source = source
    this.#stream = stream
    this.#options = options
    this.#guard = options.guard
  }

  /** What the upstream has reported so far. */
  get facts(): StreamFacts {
    return this.#stream.facts
  }

  /** Closes a stream that will not be started. */
  discard(): void {
    this.#isClosed = true
    this.#hold.release()
    clearTimeout(this.#linger)
    this.#clearTimeouts()
    this.#source.cancel()
  }

  /** Why the stream ended at a timeout or was cut off, for logs; undefined if it was not, or if the upstream just ended it. */
  get failure(): Error | undefined {
    return this.#failure
  }

  /**
   * Waits for the first content or the end, without sending anything. Resolves to false if the stream ended, reported an error or
   * reached `untilMs` (`performance.now()`) before any content.
   */
  async peek(untilMs?: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#onPeeked = resolve
      this.#startSource()
      if (untilMs !== undefined && this.#end === undefined)
        timer = setTimeout(() => this.#expire(new ProxyError('UPSTREAM_TIMEOUT', { detail: NO_CONTENT })), Math.max(0, untilMs - performance.now()))
      this.#resolvePeek()
    })
    clearTimeout(timer)
    return this.#stream.facts.hasContent || (this.#stream.facts.isComplete && this.#stream.facts.error === undefined)
  }

  start(sink: BodySink): void {
    if (this.#isClosed) return
    this.#sink = sink
    if (this.#isStarted) this.resume()
    else this.#startSource()
    this.#flow()
  }

  pause(): void {
    this.#isPaused = true
    this.#source.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#idle?.refresh()
    this.#flow()
    if (!this.#isPaused && !this.#isGuarding && !this.#isSourceDone) this.#source.resume()
  }

  cancel(error?: Error): void {
    if (this.#isClosed) return
    this.#close(this.#end ?? 'cancelled')
    this.#source.cancel(error)
  }

  #startSource(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    const { deadlineAtMs } = this.#options
    if (deadlineAtMs !== undefined)
      this.#deadline = setTimeout(() => this.#expire(new ProxyError('REQUEST_TIMEOUT')), Math.max(0, deadlineAtMs - performance.now()))
    this.#source.start({
      onData: (chunk) => {
        const sink = this.#relayTo(chunk)
        if (sink === undefined) this.#receive(chunk)
        else sink.onData(chunk)
      },
      onBorrowed: (chunk) => {
        const sink = this.#relayTo(chunk)
        // The sink must not hold the chunk: the source may be resumed while the sink is paused, to read the rest after the terminator.
        if (sink?.onBorrowed !== undefined) return sink.onBorrowed(chunk, false)
        const copy = Buffer.from(chunk)
        if (sink === undefined) this.#receive(copy)
        else sink.onData(copy)
        return false
      },
      onEnd: () => {
        this.#isSourceDone = true
        this.#receive(undefined)
      },
      onError: (error) => {
        this.#isSourceDone = true
        clearTimeout(this.#linger)
        if (this.#end !== undefined) return
        if (this.#stream.facts.isComplete) return this.#receive(undefined)
        this.#failure = error
        this.#finish('truncated', this.#stream.fail(`the upstream closed the stream early: ${failureClass(error) ?? 'stream incomplete'}`))
      },
    })
  }

  /** The sink, if a chunk passes to it as it is: nothing is before it and nothing has to be read. The stream has then counted its events. */
  #relayTo(chunk: Buffer): BodySink | undefined {
    // `#hasContent`: the stream was peeked, and the first content was reported.
    if (!this.#hasContent || this.#guard !== undefined || this.#isPaused || this.#unsentBytes > 0 || this.#ready.length > 0) return undefined
    if (this.#isClosed || this.#end !== undefined || this.#sink === undefined || !this.#stream.relay(chunk)) return undefined
    this.#idle?.refresh()
    return this.#sink
  }

  /** Handles a chunk, or the end of the upstream's body (undefined). */
  #receive(chunk: Buffer | undefined): void {
    if (chunk === undefined) clearTimeout(this.#linger)
    if (this.#isClosed || this.#end !== undefined) return
    if (this.#isGuarding) {
      this.#waiting.push(chunk)
      if (chunk !== undefined) this.#source.pause()
      return
    }
    if (chunk !== undefined && !this.#count(chunk)) return
    const stream = this.#stream
    const events = chunk === undefined ? stream.end() : stream.push(chunk)
    if (!this.#hasContent && stream.facts.hasContent) {
      this.#hasContent = true
      this.#options.onContent?.()
      this.#startIdle()
    }
    this.#idle?.refresh()
    const isLast = chunk === undefined || stream.isOver
    // Only `[DONE]` may follow; the client does not wait for an upstream that keeps the connection open.
    if (!isLast && stream.facts.isComplete) this.#linger ??= setTimeout(() => this.#receive(undefined), LINGER_MS)
    if (this.#guard === undefined) {
      this.#add(events)
      if (isLast) this.#complete()
      else this.#flow()
    } else this.#check(this.#guard, events, isLast)
    this.#resolvePeek()
  }

  /** Counts a chunk as buffered. Ends the stream and returns false if it exceeds the budget of buffered bodies. */
  #count({ length }: Buffer): boolean {
    this.#unsentBytes += length
    const excess = this.#unsentBytes < COUNTED_FROM_BYTES ? undefined : this.#hold.resize(this.#unsentBytes)
    if (excess === undefined) return true
    this.#failure = excess
    this.#finish('truncated', this.#stream.fail(excess.message))
    this.#source.cancel(excess)
    return false
  }

  #check(guard: StreamGuard, events: Events, isLast: boolean): void {
    try {
      const passed = guard.push(events)
      const all = isLast ? (passed instanceof Promise ? passed.then(async (first) => [...first, ...(await guard.end())]) : append(passed, guard.end())) : passed
      if (!(all instanceof Promise)) return this.#addChecked(all, isLast)
      this.#isGuarding = true
      this.#source.pause()
      all.then(
        (checked) => this.#resumeAfter(() => this.#addChecked(checked, isLast)),
        (error: unknown) => this.#resumeAfter(() => this.#reject(error)),
      )
    } catch (error) {
      this.#reject(error)
    }
  }

  #addChecked(events: Events, isLast: boolean): void {
    this.#add(events)
    if (isLast) this.#complete()
    else this.#flow()
  }

  #resumeAfter(work: () => void): void {
    this.#isGuarding = false
    if (this.#isClosed || this.#end !== undefined) return
    work()
    while (this.#waiting.length > 0 && !this.#isGuarding && this.#end === undefined) this.#receive(this.#waiting.shift())
    if (!this.#isGuarding && !this.#isPaused && !this.#isSourceDone && this.#end === undefined) this.#source.resume()
  }

  /** Ends the stream for any error of a guard, so that nothing passes unchecked. */
  #reject(error: unknown): void {
    const rejection = error instanceof StreamRejection ? error : new StreamRejection('prompt guard failed', 'guard_failed')
    if (error !== rejection && error instanceof Error) this.#guardFailure = error
    this.#finish('rejected', this.#stream.fail(rejection.message, rejection.code))
    this.#source.cancel(rejection)
  }

  /** Limits the pauses of the upstream. Pauses that the client or a guard causes do not count. */
  #startIdle(): void {
    const { idleMs } = this.#options
    if (idleMs === undefined) return
    this.#idle = setTimeout(() => {
      if (this.#end !== undefined) return
      if (this.#sink === undefined || this.#isPaused || this.#isGuarding) this.#idle?.refresh()
      else this.#expire(new ProxyError('UPSTREAM_TIMEOUT', { detail: `the stream paused for longer than streamIdleTimeout (${idleMs} ms)` }))
    }, idleMs)
  }

  #clearTimeouts(): void {
    clearTimeout(this.#deadline)
    clearTimeout(this.#idle)
    this.#idle = undefined
  }

  /** Ends the stream with an error event; closes it if the client does not read that event in time. */
  #expire(timeout: ProxyError): void {
    if (this.#end === undefined && this.#stream.facts.isComplete && !this.#isGuarding) return this.#receive(undefined)
    if (this.#end === undefined) {
      this.#failure = timeout
      this.#finish('timeout', this.#stream.fail(timeout.row.text, 'timeout_error'))
      this.#source.cancel(timeout)
    }
    if (this.#isClosed) return
    this.#clearTimeouts()
    this.#deadline = setTimeout(() => {
      if (this.#isClosed) return
      this.#close('timeout')
      this.#sink?.onError(timeout)
    }, LINGER_MS)
  }

  #complete(): void {
    // A stream with an error event is not complete: the usage before it lacks the text that was sent.
    this.#finish(this.#stream.facts.isComplete ? 'complete' : 'truncated', [])
    if (this.#isSourceDone) return
    // Data after the terminator is ignored; reading to the end makes the connection reusable.
    this.#source.resume()
    clearTimeout(this.#linger)
    this.#linger = setTimeout(() => this.#source.cancel(), LINGER_MS)
  }

  #finish(end: StreamEnd, events: Events): void {
    this.#add(events)
    this.#end = end
    this.#resolvePeek()
    this.#flow()
  }

  #add(events: Events): void {
    for (const event of events) {
      // Events without text pass while a guard holds text back.
      if (this.#unsentBytes > 0 && (this.#guard === undefined || event.deltas.length > 0)) {
        this.#unsentBytes = 0
        this.#hold.resize(0)
      }
      this.#ready.push(event.toBytes())
    }
  }

  #flow(): void {
    const sink = this.#sink
    if (sink === undefined || this.#isClosed) return
    while (!this.#isPaused && this.#ready.length > 0) {
      const chunks = this.#ready
      this.#ready = []
      const chunk = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)
      if (chunk.length > 0) sink.onData(chunk)
      if (this.#isClosed) return
    }
    if (this.#isPaused || this.#end === undefined) return
    this.#close(this.#end)
    sink.onEnd(undefined)
  }

  #close(end: StreamEnd): void {
    this.#isClosed = true
    this.#hold.release()
    if (end === 'cancelled') clearTimeout(this.#linger)
    this.#clearTimeouts()
    this.#options.onClose(end, this.#failure ?? this.#guardFailure)
  }

  #resolvePeek(): void {
    const { hasContent, error } = this.#stream.facts
    if (this.#onPeeked === undefined || (!hasContent && error === undefined && this.#end === undefined)) return
    const resolve = this.#onPeeked
    this.#onPeeked = undefined
    if (this.#end === undefined) this.#source.pause()
    resolve()
  }
}

function append(first: Events, rest: Events | Promise<Events>): Events | Promise<Events> {
  return rest instanceof Promise ? rest.then((more) => [...first, ...more]) : [...first, ...rest]
}
