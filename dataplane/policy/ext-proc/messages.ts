import type { MessageInitShape } from '@bufbuild/protobuf'
import type { HeaderMapSchema } from '#gen/proto/envoy/config/core/v3/base_pb.js'
import type {
  HeaderMutation,
  ImmediateResponse,
  ProcessingRequestSchema,
  ProcessingResponse,
} from '#gen/proto/envoy/service/ext_proc/v3/external_processor_pb.js'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { isNullBodyStatus } from '../../request/exchange/answer.ts'
import type { PolicyContext } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import { HeaderList } from '../../http/headers.ts'
import type { RequestHead, ResponseHead } from '../../http/message.ts'
import { changeRequest, removeFields, setFields } from '../mutations.ts'

/** A message to the processor, without the fields of the stream. */
export type ProcessorMessage = NonNullable<MessageInitShape<typeof ProcessingRequestSchema>['request']>
/** The variant part of a reply of the processor. */
export type Reply = ProcessingResponse['response']
/** The request or the response of an exchange. */
export type Direction = 'request' | 'response'

/** Headers in `raw_value`, pseudo headers in `value`. */
function toHeaderMap(headers: HeaderList, pseudo: Readonly<Record<string, string>> = {}): MessageInitShape<typeof HeaderMapSchema> {
  const list = Object.entries(pseudo).map(([key, value]): { key: string; value?: string; rawValue?: Buffer } => ({ key, value }))
  for (const [key, value] of headers) list.push({ key, rawValue: Buffer.from(value, 'latin1') })
  return { headers: list }
}

/** The message with the request headers. */
export function requestHeaders({ method, scheme, authority, target, headers, body }: RequestHead): ProcessorMessage {
  const pseudo = { ':method': method, ':scheme': scheme, ':authority': authority, ':path': target }
  return { case: 'requestHeaders', value: { headers: toHeaderMap(headers, pseudo), endOfStream: body === undefined } }
}

/** The message with the response headers. */
export function responseHeaders({ status, headers, body }: ResponseHead): ProcessorMessage {
  return { case: 'responseHeaders', value: { headers: toHeaderMap(headers, { ':status': String(status) }), endOfStream: body === undefined } }
}

/** The message with a part of a body. */
export function bodyMessage(direction: Direction, body: Buffer, endOfStream: boolean): ProcessorMessage {
  return { case: direction === 'request' ? 'requestBody' : 'responseBody', value: { body, endOfStream } }
}

/** The message with trailers. */
export function trailersMessage(direction: Direction, trailers: HeaderList): ProcessorMessage {
  return { case: direction === 'request' ? 'requestTrailers' : 'responseTrailers', value: { trailers: toHeaderMap(trailers) } }
}

/** Applies a header mutation to the request or response head. */
export function mutateHead(exchange: Exchange, direction: Direction, mutation: HeaderMutation | undefined): void {
  if (mutation === undefined) return
  if (direction === 'request') return changeRequest(exchange, mutation)
  const { response } = exchange
  if (response === undefined) return
  removeFields(response.headers, mutation.removeHeaders)
  setFields(response.headers, mutation.setHeaders, (name, value) => {
    if (name === ':status' && response.upgraded === undefined && /^[2-5]\d\d$/.test(value)) response.status = Number(value)
  })
}

/** The content-length that a mutation sets. The gateway computes its own, but rejects a processor whose length does not match its body. */
export function lengthIn(mutation: HeaderMutation | undefined): number | undefined {
  const field = mutation?.setHeaders.findLast(({ header }) => header?.key.toLowerCase() === 'content-length')?.header
  const text = field && (field.rawValue.length > 0 ? Buffer.from(field.rawValue).toString() : field.value)
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
}

/** The trailers after a mutation; undefined if none are left. */
export function mutateTrailers(trailers: HeaderList | undefined, mutation: HeaderMutation | undefined): HeaderList | undefined {
  if (mutation === undefined) return trailers
  const list = trailers?.clone() ?? new HeaderList()
  removeFields(list, mutation.removeHeaders)
  setFields(list, mutation.setHeaders, () => undefined)
  return list.raw.length === 0 ? undefined : list
}

/** The processor's immediate response to the client; its reason in logs is ExtProc. */
export function respondImmediately(c: PolicyContext, { status, headers: mutation, body, grpcStatus }: ImmediateResponse): Response {
  const { exchange } = c.var
  exchange.error = new ProxyError('EXT_PROC', { detail: 'the processor answered' })
  const headers = new HeaderList()
  if (mutation !== undefined) setFields(headers, mutation.setHeaders, () => undefined)
  if (grpcStatus !== undefined) headers.set('grpc-status', String(grpcStatus.status))
  const record: Record<string, string[]> = {}
  for (const [name, value] of headers) (record[name] ??= []).push(value)
  const requested: number = status?.code || 200
  const code = (requested >= 200 && requested <= 599 ? requested : 500) as 200
  return body.length === 0 || isNullBodyStatus(code) ? c.body(null, code, record) : c.body(new Uint8Array(body), code, record)
}
