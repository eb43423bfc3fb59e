import { isUtf8 } from 'node:buffer'
import { CelError, HeaderView, HostMap, Timestamp, UriText, type Stored } from '#api/cel/index.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { pathOf, type RequestHead, type ResponseHead } from '../../http/message.ts'
import { toEpochMs } from '../../runtime/time.ts'
import { bufferedRequest, bufferedResponse, type BufferedBody } from './buffer.ts'
import { recordedRequest, recordedResponse } from './record.ts'

/** The variable `request`. */
export class RequestView extends HostMap {
  readonly #exchange: Exchange
  #headers: HeaderView | undefined

  constructor(exchange: Exchange) {
    super()
    this.#exchange = exchange
  }

  get(key: string): Stored {
    const { request } = this.#exchange
    switch (key) {
      case 'method':
        return request.method
      case 'path':
        return pathOf(request.target)
      case 'pathAndQuery':
        return new UriText(request.target)
      case 'uri':
        return new UriText(`${request.scheme}://${request.authority}${request.target}`)
      case 'host':
        return request.authority
      case 'scheme':
        return request.scheme
      case 'version':
        return request.version
      case 'headers':
        return (this.#headers ??= new HeaderView(request.headers, decodeValue))
      case 'body':
        return completeBytes(bufferedRequest(this.#exchange)) ?? this.#recorded ?? whyUnread(this.#exchange, request, bufferedRequest(this.#exchange))
      case 'bodyPrefix':
        return bufferedRequest(this.#exchange)?.prefix ?? this.#recorded ?? whyUnread(this.#exchange, request, undefined)
      case 'startTime':
        return Timestamp.fromMs(toEpochMs(this.#exchange.startedAtMs))
      case 'endTime':
        return this.#exchange.finishedAtMs === 0 ? undefined : Timestamp.fromMs(toEpochMs(this.#exchange.finishedAtMs))
      default:
        return undefined
    }
  }

  /** Undefined until the exchange ends, because the recording is incomplete until then. */
  get #recorded(): Buffer | undefined {
    return this.#exchange.finishedAtMs === 0 ? undefined : recordedRequest(this.#exchange)
  }

  *keys(): Iterable<string> {
    yield* ['method', 'path', 'pathAndQuery', 'uri', 'host', 'scheme', 'version', 'headers', 'startTime']
    for (const key of ['endTime', 'body', 'bodyPrefix']) if (this.get(key) !== undefined) yield key
  }
}

/** The variable `response`. */
export class ResponseView extends HostMap {
  readonly #exchange: Exchange
  #headers: HeaderView | undefined

  constructor(exchange: Exchange) {
    super()
    this.#exchange = exchange
  }

  get(key: string): Stored {
    const { response } = this.#exchange
    switch (key) {
      case 'code':
        return response?.status
      case 'grpcStatus':
        return toStatus(this.#exchange.grpcStatus ?? response?.headers.get('grpc-status'))
      case 'headers':
        return response && (this.#headers ??= new HeaderView(response.headers, decodeValue))
      case 'body':
        return completeBytes(bufferedResponse(this.#exchange)) ?? this.#recorded ?? whyUnread(this.#exchange, response, bufferedResponse(this.#exchange))
      case 'bodyPrefix':
        return bufferedResponse(this.#exchange)?.prefix ?? this.#recorded ?? whyUnread(this.#exchange, response, undefined)
      default:
        return undefined
    }
  }

  get #recorded(): Buffer | undefined {
    return this.#exchange.finishedAtMs === 0 ? undefined : recordedResponse(this.#exchange)
  }

  *keys(): Iterable<string> {
    for (const key of ['code', 'grpcStatus', 'headers', 'body', 'bodyPrefix']) if (this.get(key) !== undefined) yield key
  }
}

/** Converts text to a field value: its UTF-8 bytes, stored as Latin-1 like all values of heads. */
export function toFieldValue(text: string): string {
  return Buffer.from(text).toString('latin1')
}

function completeBytes(buffered: BufferedBody | undefined): Buffer | undefined {
  return buffered?.isComplete === true ? buffered.prefix : undefined
}

const tooLong = new CelError('unreadable', 'the body is longer than frontend.http.maxBufferSize')
const notRead = new CelError('unreadable', 'the body was not read; write request.body or response.body in the expression')

/** Why the body of a message cannot be read: unlike one that is absent, it exists. In logs, a body that was not recorded is absent. */
function whyUnread({ finishedAtMs }: Exchange, message: RequestHead | ResponseHead | undefined, buffered: BufferedBody | undefined): CelError | undefined {
  if (finishedAtMs !== 0 || message?.body === undefined) return undefined
  return buffered === undefined ? notRead : tooLong
}

function toStatus(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,5}$/.test(text) ? Number(text) : undefined
}

const BEYOND_ASCII = /[^\0-\x7f]/

/** Decodes a value of a head, which is Latin-1, as UTF-8 if it is valid UTF-8. */
function decodeValue(text: string): string {
  if (!BEYOND_ASCII.test(text)) return text
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : text
}
