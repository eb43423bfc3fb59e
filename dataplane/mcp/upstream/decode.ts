import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { Body, BodySink } from '../../http/body.ts'
import { DecodedBody, type Decoder } from '../../http/decoded.ts'
import type { ResponseHead } from '../../http/message.ts'
import { UpstreamError } from '../../upstream/types.ts'

/** Decoders that emit data at each flush of the server. */
const decoders: Readonly<Record<string, () => Decoder>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/**
 * Decodes a compressed body and removes the header. Some servers compress although requests accept `identity` only. The body fails with an
 * UpstreamError `protocol` if it does not match its coding, or if the coding is not supported.
 */
export function decodeBody(response: ResponseHead): Body | undefined {
  const { headers, body } = response
  const coding = headers.get('content-encoding')?.trim().toLowerCase()
  if (body === undefined || coding === undefined || coding === '' || coding === 'identity') return body
  const create = decoders[coding]
  if (create === undefined) return new BrokenBody(body, `the upstream answered with content-encoding ${coding}, which the request does not accept`)
  headers.remove('content-encoding')
  headers.remove('content-length')
  return new DecodedBody(
    body,
    create(),
    (error) => new UpstreamError('protocol', `the response does not match its content-encoding ${coding}: ${error.message}`, error),
  )
}

/** A body that fails when it is read. */
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
    sink.onError(new UpstreamError('protocol', this.#reason))
  }

  pause(): void {}
  resume(): void {}

  cancel(error?: Error): void {
    this.#source.cancel(error)
  }
}
