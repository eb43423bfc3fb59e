import type { CommonResponse, ProcessingResponse } from '#gen/proto/envoy/service/ext_proc/v3/external_processor_pb.js'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import {
  bufferedRequest,
  bufferedResponse,
  bufferRequest,
  bufferResponse,
  decodeContent,
  replaceRequestBody,
  type BufferedBody,
} from '../../request/expression/buffer.ts'
import { BufferBody, type Body } from '../../http/body.ts'
import type { HeaderList } from '../../http/headers.ts'
import { ChangedBody } from './bodies.ts'
import { DuplexBody } from './duplex.ts'
import {
  bodyMessage,
  lengthIn,
  mutateHead,
  mutateTrailers,
  requestHeaders,
  responseHeaders,
  trailersMessage,
  type Direction,
  type ProcessorMessage,
} from './messages.ts'
import { overrideAll, type Modes } from './modes.ts'
import type { ProcessorSession } from './session.ts'
import { variables } from '../../request/exchange/variables.ts'

/** State of the processing of one exchange. `modes` changes if the processor may override it. */
export interface PhaseContext {
  readonly exchange: Exchange
  readonly session: ProcessorSession
  readonly maxBufferBytes: number
  readonly allowsOverride: boolean
  modes: Modes
  /** Whether bytes of the request body may have been sent to the processor. */
  hasSentBody: boolean
}

/** Headers and body of the request or the response. */
function messageOf(exchange: Exchange, direction: Direction): { headers: HeaderList; body: Body | undefined } | undefined {
  return direction === 'request' ? exchange.request : exchange.response
}

/**
 * Sends the request or the response to the processor (traffic.md §8.8) and applies its changes. Afterwards the head is final; a body may
 * still be streaming. Rejects with an ImmediateAnswer or with the error of the call.
 */
export async function runPhase(context: PhaseContext, direction: Direction): Promise<void> {
  const { exchange, session } = context
  const message = messageOf(exchange, direction)
  if (message === undefined) return
  const mode = context.modes[direction]
  if (mode.body !== 'None') decodeContent(exchange, direction)
  const head = mode.sendsHeaders ? session.call(headersMessage(exchange, direction)) : undefined
  // The processor may need the body before it responds to the headers.
  const duplex = mode.body === 'FullDuplexStreamed' ? streamBody(context, direction) : undefined
  let declaredLength: number | undefined
  try {
    if (head !== undefined) declaredLength = applyHeaders(context, direction, await head, duplex !== undefined)
  } catch (error) {
    if (duplex?.hasStarted === true) context.hasSentBody = true
    else if (duplex !== undefined) message.body = duplex.releaseSource()
    throw error
  }
  if (duplex !== undefined) return
  if (context.modes[direction].body !== 'None') decodeContent(exchange, direction)
  if (context.modes[direction].body === 'FullDuplexStreamed') streamBody(context, direction)
  else await sendBody(context, direction, declaredLength)
}

/** Replaces the body by the stream of the processor's output. */
function streamBody({ exchange, session }: PhaseContext, direction: Direction): DuplexBody | undefined {
  const message = messageOf(exchange, direction)
  if (message?.body === undefined) return undefined
  const duplex = new DuplexBody(session, direction, message.body)
  session.add(duplex)
  message.body = duplex
  message.headers.remove('content-length')
  return duplex
}

function headersMessage({ request, response }: Exchange, direction: Direction): ProcessorMessage {
  return direction === 'response' && response !== undefined ? responseHeaders(response) : requestHeaders(request)
}

/** Applies the response to the headers. Returns the body length that the processor declared. */
function applyHeaders(context: PhaseContext, direction: Direction, reply: ProcessingResponse, isStreaming: boolean): number | undefined {
  const { exchange } = context
  const { response, dynamicMetadata, modeOverride } = reply
  const common = response.case === 'requestHeaders' || response.case === 'responseHeaders' ? response.value.response : undefined
  mutateHead(exchange, direction, common?.headerMutation)
  if (dynamicMetadata !== undefined)
    variables.extproc.set(exchange, Object.assign(Object.create(null) as Record<string, unknown>, variables.extproc.get(exchange), dynamicMetadata))
  if (context.allowsOverride && modeOverride !== undefined)
    context.modes = overrideAll(context.modes, modeOverride, (one) => (one === direction ? isStreaming : one === 'request'))
  return lengthIn(common?.headerMutation)
}

/** Sends a buffered body and trailers. */
async function sendBody(context: PhaseContext, direction: Direction, declaredLength: number | undefined): Promise<void> {
  const { exchange, session } = context
  const mode = context.modes[direction]
  const message = messageOf(exchange, direction)
  if (message?.body === undefined) return
  const onTrailers = mode.sendsTrailers ? (trailers: HeaderList) => processTrailers(session, direction, trailers) : undefined
  if (mode.body === 'None') {
    if (onTrailers !== undefined && mayHaveTrailers(message.body)) message.body = new ChangedBody(message.body, { onTrailers, onClose: session.hold() })
    return
  }
  const { prefix, isComplete, trailers } = await buffer(context, direction)
  if (!isComplete && mode.body === 'Buffered') throw new ProxyError('EXT_PROC', { detail: `the ${direction} body exceeds ${context.maxBufferBytes} bytes` })
  if (direction === 'request') context.hasSentBody = true
  const isLast = isComplete && (trailers === undefined || onTrailers === undefined)
  const reply = await session.call(bodyMessage(direction, prefix, isLast))
  const common = reply.response.case === 'requestBody' || reply.response.case === 'responseBody' ? reply.response.value.response : undefined
  if (mode.sendsHeaders) mutateHead(exchange, direction, common?.headerMutation)
  const replaced = replacementOf(common)
  const length = mode.sendsHeaders ? (lengthIn(common?.headerMutation) ?? declaredLength) : undefined
  if (mode.body === 'Buffered' && replaced !== undefined && length !== undefined && length !== replaced.length)
    throw new ProxyError('EXT_PROC', { detail: `the processor says content-length ${length} and sends a body of ${replaced.length} bytes` })
  if (isComplete) {
    const changed = trailers !== undefined && onTrailers !== undefined ? await onTrailers(trailers) : trailers
    if (replaced === undefined && changed === trailers) return
    return replaceBody(exchange, direction, replaced ?? prefix, changed)
  }
  message.headers.remove('content-length')
  const body = messageOf(exchange, direction)?.body
  if (body === undefined) return
  message.body = new ChangedBody(body, { prefix: { bytes: replaced ?? prefix, replaced: prefix.length }, onTrailers, onClose: session.hold() })
}

/** Whether trailers may follow: only a body that was not buffered can have them. */
const mayHaveTrailers = (body: Body): boolean => !(body instanceof BufferBody)

async function processTrailers(session: ProcessorSession, direction: Direction, trailers: HeaderList): Promise<HeaderList | undefined> {
  const { response } = await session.call(trailersMessage(direction, trailers))
  const mutation = response.case === 'requestTrailers' || response.case === 'responseTrailers' ? response.value.headerMutation : undefined
  return mutateTrailers(trailers, mutation)
}

/** The new body; undefined if it is unchanged. */
function replacementOf(common: CommonResponse | undefined): Buffer | undefined {
  const mutation = common?.bodyMutation?.mutation
  switch (mutation?.case) {
    case 'body':
      return Buffer.from(mutation.value)
    case 'clearBody':
      return mutation.value ? Buffer.alloc(0) : undefined
    case 'streamedResponse':
      throw new ProxyError('EXT_PROC', { detail: 'the processor streams a body that it received buffered' })
    default:
      return undefined
  }
}

function replaceBody(exchange: Exchange, direction: Direction, bytes: Buffer, trailers: HeaderList | undefined): void {
  const message = messageOf(exchange, direction)
  if (message === undefined) return
  message.headers.remove('content-length')
  if (direction === 'request' && trailers === undefined) return replaceRequestBody(exchange, bytes)
  message.body?.cancel()
  message.body = bytes.length === 0 && trailers === undefined ? undefined : new BufferBody(bytes, trailers)
}

async function buffer({ exchange, maxBufferBytes }: PhaseContext, direction: Direction): Promise<BufferedBody> {
  if (direction === 'request') await bufferRequest(exchange, maxBufferBytes)
  else await bufferResponse(exchange, maxBufferBytes)
  const buffered = direction === 'request' ? bufferedRequest(exchange) : bufferedResponse(exchange)
  if (buffered === undefined) throw new Error('the body was not read')
  return buffered
}
