import { constants, createBrotliCompress, createGzip, createZstdCompress, type BrotliCompress, type Gzip, type ZstdCompress } from 'node:zlib'
import type { Body, BodySink } from './body.ts'
import type { HeaderList } from './headers.ts'

/** Names of the codings that bodies can be encoded with. */
export type ContentCoding = 'br' | 'gzip' | 'zstd'

const CHUNK = 64 * 1024

/** Levels of nginx and Envoy for responses that are not stored; windows of 256 KiB, so that an encoder needs about 1 MiB at most. */
const encoders: Readonly<Record<ContentCoding, { readonly create: () => Gzip | BrotliCompress | ZstdCompress; readonly flush: number }>> = {
  gzip: { create: () => createGzip({ chunkSize: CHUNK, level: 5 }), flush: constants.Z_SYNC_FLUSH },
  br: {
    create: () => createBrotliCompress({ chunkSize: CHUNK, params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: 18 } }),
    flush: constants.BROTLI_OPERATION_FLUSH,
  },
  zstd: {
    create: () => createZstdCompress({ chunkSize: CHUNK, params: { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_windowLog]: 18 } }),
    flush: constants.ZSTD_e_flush,
  },
}

/** Encoders that one thread has at most: each holds memory for as long as its client reads. */
const MAX_ENCODERS = 256
let open = 0

/** Whether a thread may encode another body. */
export const canEncode = (): boolean => open < MAX_ENCODERS

/**
 * Applies a content coding to a body while it streams, in threads of zlib. A body whose length is not known may pause at any time: what has arrived
 * by the end of a turn of the loop is flushed. Trailers stay.
 */
export class EncodedBody implements Body {
  readonly length = undefined
  readonly #source: Body
  readonly #coding: ContentCoding
  #encoder: Gzip | BrotliCompress | ZstdCompress | undefined
  #isPaused = false
  #isFlushing = false
  #isEnding = false
  #isDone = false

  constructor(source: Body, coding: ContentCoding) {
    this.#source = source
    this.#coding = coding
  }

  start(sink: BodySink): void {
    if (this.#isDone) return
    const { create, flush } = encoders[this.#coding]
    const encoder = (this.#encoder = create())
    open++
    const isStream = this.#source.length === undefined
    let trailers: HeaderList | undefined
    encoder.on('data', (chunk: Buffer) => this.#isDone || sink.onData(chunk))
    encoder.on('end', () => this.#close() && sink.onEnd(trailers))
    encoder.on('error', (error) => this.#fail(error, sink))
    encoder.on('drain', () => this.#isDone || this.#source.resume())
    if (this.#isPaused) encoder.pause()
    this.#source.start({
      onData: (chunk) => {
        if (this.#isDone) return
        if (!encoder.write(chunk)) this.#source.pause()
        if (isStream && !this.#isFlushing) this.#flushSoon(flush)
      },
      onEnd: (received) => {
        if (this.#isDone) return
        trailers = received
        this.#isEnding = true
        encoder.end()
      },
      onError: (error) => this.#fail(error, sink),
    })
  }

  #flushSoon(kind: number): void {
    this.#isFlushing = true
    setImmediate(() => {
      this.#isFlushing = false
      if (!this.#isDone && !this.#isEnding) this.#encoder?.flush(kind)
    })
  }

  pause(): void {
    this.#isPaused = true
    this.#encoder?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#encoder?.resume()
  }

  cancel(error?: Error): void {
    if (!this.#close()) return
    this.#source.cancel(error)
    this.#encoder?.destroy()
  }

  #fail(error: Error, sink: BodySink): void {
    if (this.#isDone) return
    this.cancel(error)
    sink.onError(error)
  }

  #close(): boolean {
    if (this.#isDone) return false
    this.#isDone = true
    if (this.#encoder !== undefined) open--
    return true
  }
}
