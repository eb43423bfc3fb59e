import { evalBody } from '#api/cel/index.ts'
import { isNullBodyStatus } from '../exchange/answer.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { bufferedResponse } from '../expression/buffer.ts'
import type { ExchangeView } from '../expression/view.ts'
import { BufferBody } from '../../http/body.ts'
import { describeNewBody } from '../../http/coding.ts'
import type { ResponseHead } from '../../http/message.ts'
import { computeFields, computeMetadata, type CompiledTransform } from './compile.ts'

/** Applies a transformation to a response. Each expression sees the changes of the previous ones. */
export function transformResponse(exchange: Exchange, transform: CompiledTransform, view: ExchangeView): void {
  const { response } = exchange
  if (response === undefined) return
  computeMetadata(exchange, transform, view)
  computeFields(response.headers, transform, view, (name, value) => {
    if (name === ':status') setStatus(response, value)
  })
  if (transform.body === undefined || response.upgraded !== undefined) return
  const value = evalBody(transform.body, view) ?? ''
  const bytes = typeof value === 'string' ? Buffer.from(value) : Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  // The status of a gRPC call is in the trailers, if they are known.
  const trailers = bufferedResponse(exchange)?.trailers
  describeNewBody(response.headers, transform.computed)
  response.body?.cancel()
  response.body = isNullBodyStatus(response.status) || (bytes.length === 0 && trailers === undefined) ? undefined : new BufferBody(bytes, trailers)
}

/** Sets the status. A 101 cannot be changed, and no other status can become 101. */
function setStatus(response: ResponseHead, value: string): void {
  if (response.upgraded !== undefined || !/^[2-9]\d\d$/.test(value)) return
  response.status = Number(value)
  if (!isNullBodyStatus(response.status)) return
  response.body?.cancel()
  response.body = undefined
  response.headers.remove('content-length')
}
