import type { Body, BodySink } from '../../../http/body.ts'
import type { HeaderList } from '../../../http/headers.ts'

/** Bytes of a body that are looked at. Some servers send blanks before a response in JSON, to keep the connection open. */
const MAX_HEAD_BYTES = 64 * 1024

/** What a body holds by its first character: JSON, an event stream, or neither. */
export type BodyKind = 'json' | 'events' | 'other'

/** The kind of a body that begins with a text; undefined if all of it is blank. No line of an event stream begins as JSON does. */
export function kindOf(head: string): BodyKind | undefined {
  const text = head.replace(/^\uFEFF/, '').trimStart()
  if (text === '') return undefined
  if (text.startsWith('{') || text.startsWith('[')) return 'json'
  return /^(?:(?:data|event|id|retry)(?:[:\r\n]|$)|:)/.test(text) ? 'events' : 'other'
}

interface End {
  readonly trailers?: HeaderList | undefined
  readonly error?: Error
}

/** A body whose beginning is read before its sink is known. Nothing is lost, and back-pressure stays. */
export class SniffedBody implements Body {
  readonly #source: Body
  #chunks: Buffer[] = []
  #size = 0
  #sink: BodySink | undefined
  #isPaused = false
  #end: End | undefined
  #isDelivered = false
  #onPeeked: ((kind: BodyKind | undefined) => void) | undefined

  constructor(source: Body) {
    this.#source = source
  }

  get length(): number | undefined {
    return this.#source.length
  }

  /** Reads up to the first character that is not blank; undefined if there is none, or none until `untilMs` (`performance.now()`). */
  async peek(untilMs: number | undefined): Promise<BodyKind | undefined> {
    let timer: NodeJS.Timeout | undefined
    const kind = await new Promise<BodyKind | undefined>((resolve) => {
      this.#onPeeked = resolve
      if (untilMs !== undefined) timer = setTimeout(() => this.#resolve(undefined), Math.max(0, untilMs - performance.now()))
      this.#source.start({
        onData: (chunk) => this.#receive(chunk),
        onBorrowed: (chunk, canHold) => {
          if (this.#isDirect && this.#sink?.onBorrowed !== undefined) return this.#sink.onBorrowed(chunk, canHold)
          this.#receive(Buffer.from(chunk))
          return false
        },
        onEnd: (trailers) => this.#finish({ trailers }),
        onError: (error) => this.#finish({ error }),
      })
    })
    clearTimeout(timer)
    return kind
  }

  start(sink: BodySink): void {
    this.#sink = sink
    this.resume()
  }

  pause(): void {
    this.#isPaused = true
    this.#source.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#flow()
    if (!this.#isPaused && this.#end === undefined) this.#source.resume()
  }

  cancel(error?: Error): void {
    this.#isDelivered = true
    this.#chunks = []
    this.#source.cancel(error)
  }

  /** Chunks pass to the sink as they come. */
  get #isDirect(): boolean {
    return this.#sink !== undefined && this.#chunks.length === 0
  }

  #receive(chunk: Buffer): void {
    if (this.#isDirect) return this.#sink?.onData(chunk)
    this.#chunks.push(chunk)
    if (this.#onPeeked === undefined) return
    this.#size += chunk.length
    const kind = kindOf(chunk.toString('utf8', 0, MAX_HEAD_BYTES))
    if (kind !== undefined || this.#size > MAX_HEAD_BYTES) this.#resolve(kind)
  }

  #finish(end: End): void {
    this.#end = end
    this.#resolve(undefined)
    this.#flow()
  }

  #resolve(kind: BodyKind | undefined): void {
    if (this.#onPeeked === undefined) return
    if (this.#end === undefined) this.#source.pause()
    this.#onPeeked(kind)
    this.#onPeeked = undefined
  }

  #flow(): void {
    const sink = this.#sink
    if (sink === undefined || this.#isDelivered) return
    while (!this.#isPaused && this.#chunks.length > 0) {
      const [chunk] = this.#chunks
      this.#chunks.shift()
      if (chunk !== undefined) sink.onData(chunk)
    }
    if (this.#isPaused || this.#chunks.length > 0 || this.#end === undefined || this.#isDelivered) return
    this.#isDelivered = true
    if (this.#end.error !== undefined) sink.onError(this.#end.error)
    else sink.onEnd(this.#end.trailers)
  }
}
