import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { Body, BodySink } from '../../http/body.ts'
import { DecodedBody, type Decoder } from '../../http/decoded.ts'
import type { ResponseHead } from '../../http/message.ts'

/** gzip and deflate give what they have at each flush of the server; brotli as well. */
const decoders: Readonly<Record<string, () => Decoder>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/** Takes the content coding off a response that we read; its header goes with it. Servers are asked for none, and some do it all the same. */
export function decodeBody(response: ResponseHead): Body | undefined {
  const { headers, body } = response
  const coding = headers.get('content-encoding')?.trim().toLowerCase()
  if (body === undefined || coding === undefined || coding === '' || coding === 'identity') return body
  const create = decoders[coding]
  if (create === undefined) return new BrokenBody(body, `the upstream answered with content-encoding ${coding}, which nobody asked for`)
  headers.remove('content-encoding')
  headers.remove('content-length')
  return new DecodedBody(body, create())
}

/** Fails as soon as somebody reads it. */
class BrokenBody implements Body {
  readonly length = undefined
  readonly #source: Body
  readonly #reason: string

  constructor(source: Body, reason: string) {
    this.#source = source
    this.#reason = reason
  }

  start(sink: BodySink): void {
    this.#source.cancel()
    sink.onError(new Error(this.#reason))
  }

  pause(): void {}
  resume(): void {}

  cancel(error?: Error): void {
    this.#source.cancel(error)
  }
}
