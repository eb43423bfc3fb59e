import { errorTable, grpcStatusOfError, type ErrorCode, type ErrorRow } from '#api/errors.ts'
import { BufferBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import type { RequestHead, ResponseHead } from '../../http/message.ts'

/** Formats the body of an error response for clients of one protocol; undefined: as text. */
export type ErrorFormat = (error: ProxyError, message: string, request: RequestHead) => { readonly contentType: string; readonly body: string } | undefined

/**
 * The one error type of the data plane. `detail` may reach the client where the error table says so, so it never holds an address or a name of an
 * upstream; `cause` is for logs only.
 */
export class ProxyError extends Error {
  readonly code: ErrorCode
  readonly detail: string | undefined
  /** Header fields of the response, such as a challenge. */
  readonly headers: Readonly<Record<string, string>>
  readonly row: ErrorRow

  /** `row`: values in place of those of the table, for errors whose status is configured. */
  constructor(
    code: ErrorCode,
    options: { detail?: string | undefined; cause?: unknown; headers?: Readonly<Record<string, string>>; row?: Partial<ErrorRow> } = {},
  ) {
    const row: ErrorRow = options.row === undefined ? errorTable[code] : { ...errorTable[code], ...options.row }
    super(withDetail(row, options.detail ?? ''), { cause: options.cause })
    this.name = 'ProxyError'
    this.code = code
    this.row = row
    this.detail = options.detail
    this.headers = requiredHeaders(row, options.headers ?? {}, options.cause)
  }
}

/** The header of a response that tells clients when to try again. */
export const retryAfter = (ms: number): Readonly<Record<string, string>> => ({ 'retry-after': String(Math.max(1, Math.ceil(ms / 1000))) })

/** Adds what the status needs: a challenge (RFC 9110 §15.5.2), or the time until the next attempt if it is known (RFC 6585 §4, RFC 9110 §15.6.4). */
function requiredHeaders({ status, retryAfter: seconds }: ErrorRow, headers: ProxyError['headers'], cause: unknown): ProxyError['headers'] {
  if (status === 401 && !('www-authenticate' in headers) && !('proxy-authenticate' in headers)) return { ...headers, 'www-authenticate': 'Bearer' }
  return 'retry-after' in headers ? headers : { ...headers, ...retryHeaders(status, cause, seconds) }
}

/** The header with the time until the next attempt, for a 429 or 503 whose cause knows it, else after `seconds`; nothing if it is not known. */
export function retryHeaders(status: number, cause: unknown, seconds?: number): Readonly<Record<string, string>> {
  if (status !== 429 && status !== 503) return {}
  const ms = retryAfterMsOf(cause) ?? (seconds === undefined ? undefined : seconds * 1000)
  return ms === undefined ? {} : retryAfter(ms)
}

/** The delay that one of the causes knows: a circuit that is open (callout/circuit.ts). */
function retryAfterMsOf(cause: unknown): number | undefined {
  for (let at = cause, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++)
    if ('retryAfterMs' in at && typeof at.retryAfterMs === 'number') return at.retryAfterMs
  return undefined
}

function withDetail({ text, detail: separator = ': ' }: ErrorRow, detail: string): string {
  return detail === '' ? text : text + separator + detail
}

/** Turns any thrown value into a ProxyError; unknown ones become INTERNAL, here and nowhere else. */
export function toProxyError(thrown: unknown): ProxyError {
  return thrown instanceof ProxyError ? thrown : new ProxyError('INTERNAL', { cause: thrown })
}

/** Whether the client speaks gRPC, by content-type. grpc-web does not count (traffic.md §6). */
export function isGrpcRequest(request: RequestHead): boolean {
  const type = request.headers.get('content-type')
  if (type === undefined || !type.toLowerCase().startsWith('application/grpc')) return false
  const next = type[16]
  return next === undefined || next === '+' || next === ';' || next === ' '
}

/** grpc-message: UTF-8, everything but printable ASCII and `%` percent-encoded, space included (gRPC over HTTP/2 spec, traffic.md §14 row 3). */
function encodeGrpcMessage(text: string): string {
  let out = ''
  for (const byte of Buffer.from(text))
    out += byte > 0x20 && byte < 0x7f && byte !== 0x25 ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  return out
}

/** Creates the response for an error: text/plain, the format of the client's protocol, or grpc-status for gRPC clients (traffic.md §6). */
export function toErrorResponse(error: ProxyError, request: RequestHead, format?: ErrorFormat): ResponseHead {
  const { status, text, detail, grpc } = error.row
  const message = detail === undefined ? text : error.message
  if (isGrpcRequest(request)) {
    const headers = new HeaderList([
      'content-type',
      'application/grpc',
      'grpc-status',
      String(grpc ?? grpcStatusOfError(status)),
      'grpc-message',
      encodeGrpcMessage(message),
      'content-length',
      '0',
    ])
    addHeaders(headers, error)
    return { status: 200, headers, body: undefined, upgraded: undefined }
  }
  const formatted = format?.(error, message, request)
  const body = new BufferBody(formatted?.body ?? message)
  const headers = new HeaderList(['content-type', formatted?.contentType ?? 'text/plain', 'content-length', String(body.length)])
  addHeaders(headers, error)
  return { status, headers, body, upgraded: undefined }
}

function addHeaders(list: HeaderList, { headers }: ProxyError): void {
  for (const name in headers) list.append(name, headers[name] ?? '')
}
