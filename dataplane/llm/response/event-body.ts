import { ProxyError } from '../../exchange/error.ts'
import type { Body, BodySink } from '../../http/body.ts'
import { StreamRejection, type StreamGuard } from '../guards/index.ts'
import type { ClientEvent, ResponseStream } from '../common/types.ts'

type Events = readonly ClientEvent[]

/** How a stream ended: as it should, broken by the upstream, too late, refused by a guard, or given up by the client. */
type StreamEnd = 'complete' | 'truncated' | 'late' | 'rejected' | 'cancelled'

interface EventBodyOptions {
  readonly guard: StreamGuard | undefined
  /** `performance.now()` at which the stream ends with an error; undefined: never. */
  readonly deadlineAtMs?: number | undefined
  /** The first piece of content, reasoning or tool input came from the upstream. */
  onContent?(): void
  /** Once, before the client learns of the end. */
  onClose(end: StreamEnd): void
}

/** After its terminator an upstream has this long to end the body, and a client after the deadline to take the error; then the connection is given up. */
const LINGER_MS = 1000

/** A streamed answer on its way to the client: the upstream's bytes through a ResponseStream, and through guards. */
export class EventBody implements Body {
  readonly length = undefined
  readonly #source: Body
  readonly #stream: ResponseStream
  readonly #options: EventBodyOptions
  readonly #guard: StreamGuard | undefined
  /** For the client, not yet taken. */
  #ready: Buffer[] = []
  /** From the upstream, while a guard thinks. */
  #waiting: (Buffer | undefined)[] = []
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
  #onPeeked: (() => void) | undefined

  constructor(source: Body, stream: ResponseStream, options: EventBodyOptions) {
    this.#source = source
    this.#stream = stream
    this.#options = options
    this.#guard = options.guard
  }

  /** Gives a stream up that nobody will start; nothing is charged for it. */
  discard(): void {
    this.#isClosed = true
    clearTimeout(this.#linger)
    clearTimeout(this.#deadline)
    this.#source.cancel()
  }

  /** The deadline has passed. */
  get isLate(): boolean {
    return this.#end === 'late'
  }

  /** Resolves once there is content, or an end. False: it ended, or said an error, before any content; nothing was sent yet. */
  async peek(): Promise<boolean> {
    await new Promise<void>((resolve) => {
      this.#onPeeked = resolve
      this.#startSource()
      this.#resolvePeek()
    })
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
    if (deadlineAtMs !== undefined) this.#deadline = setTimeout(() => this.#expire(), Math.max(0, deadlineAtMs - performance.now()))
    this.#source.start({
      onData: (chunk) => this.#take(chunk),
      onEnd: () => {
        this.#isSourceDone = true
        this.#take(undefined)
      },
      onError: (error) => {
        this.#isSourceDone = true
        clearTimeout(this.#linger)
        if (this.#end === undefined) this.#finish('truncated', this.#stream.fail(`the upstream broke off: ${error.message}`))
      },
    })
  }

  /** A chunk, or the end of the upstream's body. */
  #take(chunk: Buffer | undefined): void {
    if (chunk === undefined) clearTimeout(this.#linger)
    if (this.#isClosed || this.#end !== undefined) return
    if (this.#isGuarding) {
      this.#waiting.push(chunk)
      if (chunk !== undefined) this.#source.pause()
      return
    }
    const stream = this.#stream
    const events = chunk === undefined ? stream.end() : stream.push(chunk)
    if (!this.#hasContent && stream.facts.hasContent) {
      this.#hasContent = true
      this.#options.onContent?.()
    }
    const isLast = chunk === undefined || stream.isOver
    if (this.#guard === undefined) {
      this.#add(events)
      if (isLast) this.#complete()
      else this.#flow()
    } else this.#judge(this.#guard, events, isLast)
    this.#resolvePeek()
  }

  #judge(guard: StreamGuard, events: Events, isLast: boolean): void {
    try {
      const passed = guard.push(events)
      const all = isLast ? (passed instanceof Promise ? passed.then(async (first) => [...first, ...(await guard.end())]) : append(passed, guard.end())) : passed
      if (!(all instanceof Promise)) return this.#passed(all, isLast)
      this.#isGuarding = true
      this.#source.pause()
      all.then(
        (judged) => this.#resumeAfter(() => this.#passed(judged, isLast)),
        (error: unknown) => this.#resumeAfter(() => this.#reject(error)),
      )
    } catch (error) {
      this.#reject(error)
    }
  }

  #passed(events: Events, isLast: boolean): void {
    this.#add(events)
    if (isLast) this.#complete()
    else this.#flow()
  }

  #resumeAfter(work: () => void): void {
    this.#isGuarding = false
    if (this.#isClosed || this.#end !== undefined) return
    work()
    while (this.#waiting.length > 0 && !this.#isGuarding && this.#end === undefined) this.#take(this.#waiting.shift())
    if (!this.#isGuarding && !this.#isPaused && !this.#isSourceDone && this.#end === undefined) this.#source.resume()
  }

  /** Whatever a guard throws stops the stream: nothing passes unchecked. */
  #reject(error: unknown): void {
    const rejection = error instanceof StreamRejection ? error : new StreamRejection('prompt guard failed', 'guard_failed')
    this.#finish('rejected', this.#stream.fail(rejection.message, rejection.code))
    this.#source.cancel(rejection)
  }

  /** Whoever does not even take the error is cut off. */
  #expire(): void {
    const late = new ProxyError('REQUEST_TIMEOUT')
    if (this.#end === undefined) {
      this.#finish('late', this.#stream.fail(late.message, 'timeout_error'))
      this.#source.cancel(late)
    }
    if (this.#isClosed) return
    this.#deadline = setTimeout(() => {
      if (this.#isClosed) return
      this.#close('late')
      this.#sink?.onError(late)
    }, LINGER_MS)
  }

  #complete(): void {
    const { isComplete, error } = this.#stream.facts
    this.#finish(isComplete || error !== undefined ? 'complete' : 'truncated', [])
    if (this.#isSourceDone) return
    // What follows the terminator is nobody's; reading on lets the connection be used again.
    this.#source.resume()
    this.#linger = setTimeout(() => this.#source.cancel(), LINGER_MS)
  }

  #finish(end: StreamEnd, events: Events): void {
    this.#add(events)
    this.#end = end
    this.#resolvePeek()
    this.#flow()
  }

  #add(events: Events): void {
    for (const event of events) this.#ready.push(event.toBytes())
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
    if (end === 'cancelled') clearTimeout(this.#linger)
    clearTimeout(this.#deadline)
    this.#options.onClose(end)
  }

  #resolvePeek(): void {
    const { hasContent, error } = this.#stream.facts
    if (this.#onPeeked === undefined || (!hasContent && error === undefined && this.#end === undefined)) return
    const tell = this.#onPeeked
    this.#onPeeked = undefined
    if (this.#end === undefined) this.#source.pause()
    tell()
  }
}

function append(first: Events, rest: Events | Promise<Events>): Events | Promise<Events> {
  return rest instanceof Promise ? rest.then((more) => [...first, ...more]) : [...first, ...rest]
}
