import type { ErrorCode } from '#api/errors.ts'
import { ProxyError, toErrorResponse } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { Framing } from '../../../http/http1/fields.ts'
import type { RequestHead, ResponseHead } from '../../../http/message.ts'
import { parseContentLength, type MessageError } from '../../../http/syntax.ts'

/** Whether the response to this request is sent with its body (RFC 9112 §6.3). */
export function hasResponseBody(request: RequestHead, response: ResponseHead): boolean {
  return request.method !== 'HEAD' && response.status !== 204 && response.status !== 304
}

/** Framing fields of a response; undefined: neither fields nor body. Responses to HEAD and 304 have the length of a GET. */
export function responseFraming(request: RequestHead, response: ResponseHead): Framing | undefined {
  const { status, headers, body } = response
  if (status === 204) return undefined
  if (!hasResponseBody(request, response)) return body?.length ?? parseContentLength(headers.get('content-length') ?? '')
  if (body === undefined) return 0
  if (body.length !== undefined) return body.length
  return request.version === 'HTTP/1.0' ? 'until-close' : 'chunked'
}

/** The error of a request that turned out to be invalid after its head. */
export function requestFailure(error: MessageError): ProxyError {
  return new ProxyError(errorCodeOf(error), { detail: error.message })
}

function errorCodeOf(error: MessageError): ErrorCode {
  switch (error.status) {
    case 408:
      return 'CLIENT_TIMEOUT'
    case 413:
      return 'BODY_TOO_LARGE'
    case 431:
      return 'HEADERS_TOO_LARGE'
    default:
      return 'INVALID_REQUEST'
  }
}

/** Makes an error the response of the exchange; a previous response is cancelled. Returns the response. */
export function setErrorResponse(exchange: Exchange, error: ProxyError): ResponseHead {
  exchange.response?.body?.cancel()
  exchange.error = error
  return (exchange.response = toErrorResponse(error, exchange.request))
}

/** The error to respond with if the body of a response failed before anything was sent. */
export function unsentFailure(error: Error): ProxyError {
  return error instanceof ProxyError ? error : new ProxyError('UPSTREAM_FAILED', { detail: 'the response broke off', cause: error })
}
