import type { Body, BodySink } from './body.ts'
import type { Gunzip } from 'node:zlib'

/** The members of a zlib stream that DecodedBody uses. */
export type Decoder = Pick<Gunzip, 'write' | 'end' | 'on' | 'pause' | 'resume' | 'destroy' | 'bytesWritten'>

/** Times that decoded content may exceed the coded content. Deflate reaches 1,032; brotli and zstd have no such bound. */
const MAX_RATIO = 1_100
/** Bytes of decoded content from which the ratio counts. */
const RATIO_FROM = 64 * 1024

/**
 * Removes one content coding from a body while it streams. Drops trailers. Fails if the content does not match the coding, if bytes follow its
 * end, because other decoders may read them, and if it expands more than 1,100 times.
 */
export class DecodedBody implements Body {
  readonly length = undefined
  readonly #source: Body
  readonly #createDecoder: (first: number) => Decoder
  readonly #describe: (error: Error) => Error
  #decoder: Decoder | undefined
  #isPaused = false
  #isDone = false

  /**
   * `createDecoder` receives the first byte of the content. `describe` makes the error of the body from that of the decoder; default: the same
   * error.
   */
  constructor(source: Body, createDecoder: (first: number) => Decoder, describe: (error: Error) => Error = (error) => error) {
    this.#source = source
    this.#createDecoder = createDecoder
    this.#describe = describe
  }

  start(sink: BodySink): void {
    let received = 0
    this.#source.start({
      onData: (chunk) => {
        const [first] = chunk
        if (this.#isDone || first === undefined) return
        received += chunk.length
        this.#decoder ??= this.#open(first, sink, () => received)
        if (!this.#decoder.write(chunk)) this.#source.pause()
      },
      onEnd: () => {
        if (this.#isDone) return
        if (this.#decoder !== undefined) return void this.#decoder.end()
        // A message without content, such as the response to HEAD, may have the header.
        this.#isDone = true
        sink.onEnd(undefined)
      },
      onError: (error) => this.#fail(error, sink),
    })
  }

  #open(first: number, sink: BodySink, received: () => number): Decoder {
    const decoder = this.#createDecoder(first)
    let decoded = 0
    decoder.on('data', (chunk: Buffer) => {
      if (this.#isDone) return
      decoded += chunk.length
      if (decoded > RATIO_FROM && decoded > received() * MAX_RATIO)
        return this.#fail(this.#describe(new Error(`the content expands more than ${MAX_RATIO} times`)), sink)
      sink.onData(chunk)
    })
    decoder.on('end', () => {
      if (this.#isDone) return
      if (decoder.bytesWritten < received()) return this.#fail(this.#describe(new Error('data follows the end of the coded content')), sink)
      this.#isDone = true
      sink.onEnd(undefined)
    })
    decoder.on('error', (error: Error) => this.#fail(this.#describe(error), sink))
    decoder.on('drain', () => this.#source.resume())
    if (this.#isPaused) decoder.pause()
    return decoder
  }

  #fail(error: Error, sink: BodySink): void {
    if (this.#isDone) return
    this.cancel(error)
    sink.onError(error)
  }

  pause(): void {
    this.#isPaused = true
    if (this.#decoder === undefined) this.#source.pause()
    else this.#decoder.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (this.#decoder === undefined) this.#source.resume()
    else this.#decoder.resume()
  }

  cancel(error?: Error): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#source.cancel(error)
    this.#decoder?.destroy()
  }
}
