import { evalBody } from '#api/cel/index.ts'
import type { Exchange } from '../../exchange.ts'
import { replaceRequestBody } from '../../expression/buffer.ts'
import type { ExchangeView } from '../../expression/view.ts'
import type { RequestHead } from '../../http/message.ts'
import { isAuthority, isOriginForm, isToken } from '../../http/syntax.ts'
import { computeFields, computeMetadata, type CompiledTransform } from './compile.ts'

/** Each expression sees what the ones before it did. */
export function transformRequest(exchange: Exchange, transform: CompiledTransform, view: ExchangeView): void {
  const { request } = exchange
  computeMetadata(exchange, transform, view)
  computeFields(request.headers, transform, view, (name, value) => {
    if (setPseudoHeader(request, name, value) && name === ':authority') exchange.isAuthorityFixed = true
  })
  // An upgrade has no body, and what would follow it belongs to the other protocol.
  if (transform.body === undefined || request.upgrade !== undefined) return
  const body = evalBody(transform.body, view) ?? ''
  request.headers.remove('content-length')
  replaceRequestBody(exchange, typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength))
}

/** False when the value is not one: the request stays as it was. */
function setPseudoHeader(request: RequestHead, name: string, value: string): boolean {
  switch (name) {
    case ':method':
      // CONNECT would make a tunnel of it.
      if (!isToken(value) || value === 'CONNECT') return false
      request.method = value
      return true
    case ':scheme':
      if (value !== 'http' && value !== 'https') return false
      request.scheme = value
      return true
    case ':authority':
      if (!isAuthority(value)) return false
      request.authority = value
      return true
    case ':path':
      if (!isOriginForm(value)) return false
      request.target = value
      return true
    default:
      return false
  }
}
