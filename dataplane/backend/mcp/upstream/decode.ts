import type { Body, BodySink } from '../../../http/body.ts'
import { contentCoding, decodeBody as decode } from '../../../http/coding.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { UpstreamError } from '../../../net/upstream/types.ts'

/**
 * Decodes a compressed body and removes the header. Some servers compress although requests accept `identity` only. The body fails with an
 * UpstreamError `protocol` if it does not match its coding, or if the coding is not supported.
 */
export function decodeBody(response: ResponseHead): Body | undefined {
  const { headers, body } = response
  const coding = contentCoding(headers)
  if (body === undefined || coding === undefined) return body
  const describe = (error: Error): UpstreamError =>
    new UpstreamError('protocol', `the response does not match its content-encoding ${coding}: ${error.message}`, error)
  try {
    const decoded = decode(body, coding, describe)
    headers.remove('content-encoding')
    headers.remove('content-length')
    return decoded
  } catch {
    return new BrokenBody(body, `the upstream answered with content-encoding ${coding}, which the request does not accept`)
  }
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
