import type { Body, BodySink } from './body.ts'
import type { Gunzip } from 'node:zlib'

/** The methods of a zlib stream that DecodedBody uses. */
export type Decoder = Pick<Gunzip, 'write' | 'end' | 'on' | 'pause' | 'resume' | 'destroy'>

/** Removes one content coding from a body while it streams. Drops trailers. */
export class DecodedBody implements Body {
  readonly length = undefined
  readonly #source: Body
  readonly #decoder: Decoder
  readonly #describe: (error: Error) => Error
  #isDone = false

  /** `describe` makes the error of the body from that of the decoder. Default: the same error. */
  constructor(source: Body, decoder: Decoder, describe: (error: Error) => Error = (error) => error) {
    this.#source = source
    this.#decoder = decoder
    this.#describe = describe
  }

  start(sink: BodySink): void {
    const decoder = this.#decoder
    const fail = (error: Error): void => {
      if (this.#isDone) return
      this.#isDone = true
      this.#source.cancel(error)
      decoder.destroy()
      sink.onError(error)
    }
    decoder.on('data', (chunk: Buffer) => {
      if (!this.#isDone) sink.onData(chunk)
    })
    decoder.on('end', () => {
      if (this.#isDone) return
      this.#isDone = true
      sink.onEnd(undefined)
    })
    decoder.on('error', (error: Error) => fail(this.#describe(error)))
    decoder.on('drain', () => this.#source.resume())
    this.#source.start({
      onData: (chunk) => {
        if (!this.#isDone && !decoder.write(chunk)) this.#source.pause()
      },
      onEnd: () => decoder.end(),
      onError: fail,
    })
  }

  pause(): void {
    this.#decoder.pause()
  }

  resume(): void {
    this.#decoder.resume()
  }

  cancel(error?: Error): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#source.cancel(error)
    this.#decoder.destroy()
  }
}
