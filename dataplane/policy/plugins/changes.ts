import { PluginError } from './plugin-error.ts'
import { holdBytes, replaceRequestBody } from '../../request/expression/buffer.ts'
import { LocalResponse } from '../../request/exchange/answer.ts'
import { framingFields } from '../../request/exchange/fields.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { setPseudoHeader } from '../../request/exchange/pseudo.ts'
import { BufferBody, type Body } from '../../http/body.ts'
import { describeNewBody } from '../../http/coding.ts'
import type { ResponseHead } from '../../http/message.ts'
import { isToken } from '../../http/syntax.ts'
import { changeFields } from './guest/fetch-objects.ts'
import type { RequestChange, ResponseChange } from './guest/messages.ts'
import type { Answer } from './guest/plugin-call.ts'

/** Whether plugins may set or remove the field. Framing is the gateway's. */
export const isChangeable = (name: string): boolean => isToken(name) && !framingFields.has(name) && name !== 'host'

/** Applies what a plugin changed before `next()`. `made`: the body that it makes in chunks. Throws a ProxyError if the budget of buffered bodies is exceeded. */
export function changeRequest(exchange: Exchange, change: RequestChange, made?: Body): void {
  const { request } = exchange
  if (change.body !== undefined) describeNewBody(request.headers)
  changeFields(request.headers, change, isChangeable)
  const [host] = change.set.find(([name]) => name === 'host')?.[1] ?? []
  if (host !== undefined && setPseudoHeader(request, ':authority', host)) exchange.isAuthorityFixed = true
  if (change.method !== undefined) setPseudoHeader(request, ':method', change.method)
  if (change.target !== undefined) setPseudoHeader(request, ':path', change.target)
  if (change.body === undefined) return
  if (change.body === 'stream') {
    request.body = made
    return
  }
  replaceRequestBody(exchange, toBuffer(change.body))
  if (change.body.length > 0) request.headers.set('content-length', String(change.body.length))
}

/** Applies what a plugin changed after `next()`. `made`: the body that it makes in chunks. Throws a ProxyError if the budget of buffered bodies is exceeded. */
export function changeResponse(exchange: Exchange, response: ResponseHead, change: ResponseChange, made?: Body): void {
  if (change.body !== undefined) describeNewBody(response.headers)
  changeFields(response.headers, change, isChangeable)
  if (change.status !== undefined) response.status = change.status
  if (change.body === undefined) return
  if (change.body === 'stream') {
    response.body = made
    return
  }
  const bytes = toBuffer(change.body)
  holdBytes(exchange, bytes)
  response.body?.cancel()
  response.body = bytes.length === 0 ? undefined : new BufferBody(bytes)
  if (![204, 205, 304].includes(response.status)) response.headers.set('content-length', String(bytes.length))
}

function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

/** The response of a plugin. Headers that frame the message are those of the gateway. Throws a PluginError if a process sent what is no response. */
export function toAnswer({ status, headers: fields, body }: Answer): Response {
  try {
    const headers = new Headers()
    for (let at = 0; at < fields.length; at += 2) headers.append(fields[at] ?? '', fields[at + 1] ?? '')
    for (const name of framingFields) headers.delete(name)
    return new LocalResponse(body.length === 0 ? null : body, { status, headers }, undefined)
  } catch (error) {
    throw new PluginError('failed', `a malformed response: ${error instanceof Error ? error.message : String(error)}`)
  }
}
