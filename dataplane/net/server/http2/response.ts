import { BufferBody } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import { httpDate } from '../../../http/http1/serialize.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { parseContentLength, type MessageError } from '../../../http/syntax.ts'
import { encodeLiteral } from '../../../http/http2/fields.ts'
import { encodeField } from '../../../http/http2/hpack.ts'

/** Encoded `:status` fields by status. */
const statusFields: (string | undefined)[] = []

/** Encodes the `:status` field of a head. */
export function encodeStatus(status: number): string {
  return (statusFields[status] ??= encodeField(':status', String(status)))
}

/** Encodes a response head; adds `date`. Throws if a policy inserted text that HTTP cannot carry. */
export function encodeResponseHead({ status, headers, body }: ResponseHead, hasBody: boolean): string {
  if (!(status >= 200 && status <= 999)) throw new Error('response has an invalid status')
  const { raw } = headers
  let block = encodeStatus(status)
  let length = body?.length
  let hasDate = false
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    const value = raw[i + 1] ?? ''
    // The length of the body replaces the field. Without a body the field is the length of a GET response.
    if (name === 'content-length') length = hasBody ? length : (length ?? parseContentLength(value))
    else {
      if (name === 'date') hasDate = true
      block += encodeLiteral(name, value)
    }
  }
  if (length !== undefined && status !== 204) block += encodeLiteral('content-length', String(length))
  return hasDate ? block : block + encodeLiteral('date', httpDate())
}

/** The response to a request that was rejected before it was parsed. */
export function textResponse({ status, message }: MessageError): ResponseHead {
  return { status, headers: new HeaderList(['content-type', 'text/plain']), body: new BufferBody(message), upgraded: undefined }
}
