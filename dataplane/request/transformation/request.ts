import { evalBody } from '#api/cel/index.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { replaceRequestBody } from '../expression/buffer.ts'
import type { ExchangeView } from '../expression/view.ts'
import { describeNewBody } from '../../http/coding.ts'
import { setPseudoHeader } from '../exchange/pseudo.ts'
import { computeFields, computeMetadata, type CompiledTransform } from './compile.ts'

/** Applies a transformation to a request. Each expression sees the changes of the previous ones. */
export function transformRequest(exchange: Exchange, transform: CompiledTransform, view: ExchangeView): void {
  const { request } = exchange
  computeMetadata(exchange, transform, view)
  computeFields(request.headers, transform, view, (name, value) => {
    if (setPseudoHeader(request, name, value) && name === ':authority') exchange.isAuthorityFixed = true
  })
  // An upgrade has no body. Bytes after it belong to the other protocol.
  if (transform.body === undefined || request.upgrade !== undefined) return
  const body = evalBody(transform.body, view) ?? ''
  describeNewBody(request.headers, transform.computed)
  replaceRequestBody(exchange, typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength))
}
