import {
  fromBinary,
  type DescMessage,
  type DescMethod,
  type DescMethodBiDiStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf'
import { grpcStatusOf } from '#api/errors.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { readHeldBody } from '../../request/exchange/held.ts'
import { BodyTooLargeError, type Body, type BodySink } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { Destination } from '../upstream/destination.ts'
import { failureClass } from '../upstream/failure-class.ts'
import { UpstreamError } from '../upstream/types.ts'
import { encodeMessage } from './encode.ts'
import { encodeFrame, FrameReader } from './frames.ts'
import { startCall, type Callout, type StartedCall } from './http.ts'

/** How a gRPC call is made. */
export interface GrpcOptions {
  /** Timeout of the whole call, sent as `grpc-timeout`. Undefined: the destination's own, if any. */
  readonly timeoutMs?: number | undefined
  /** As in CalloutOptions: its abort cancels the call, and its deadline applies. */
  readonly exchange?: Exchange | undefined
  /** Metadata; names in lower case, `-bin` values in base64. */
  readonly metadata?: HeaderList | undefined
  /** Maximum length of a received message. Default 4 MiB. */
  readonly limitBytes?: number
}

/** The service responded with a status other than OK. Calls without a response fail with an UpstreamError. */
export class GrpcError extends Error {
  /** As in grpc-status: 1 CANCELLED to 16 UNAUTHENTICATED. */
  readonly status: number
  readonly trailers: HeaderList

  constructor(status: number, message: string, trailers = new HeaderList()) {
    super(message)
    this.name = 'GrpcError'
    this.status = status
    this.trailers = trailers
  }
}

/** Whether a gRPC or HTTP call failed because of the service, so that a policy's failure mode applies. Other errors are internal. */
export function isCallFailure(error: unknown): boolean {
  return error instanceof UpstreamError || error instanceof GrpcError || error instanceof BodyTooLargeError
}

/** What clients learn of such a failure: its class, without names and addresses. */
export function callFailureClass(error: unknown): string {
  if (error instanceof GrpcError) return `grpc-status ${error.status}`
  return failureClass(error) ?? (error instanceof BodyTooLargeError ? error.message : 'protocol error')
}

const LIMIT_BYTES = 4 * 1024 * 1024
/** Limit of queued bytes for a service that does not read; `send` returns false beyond it. */
const HIGH_WATER_BYTES = 256 * 1024

/**
 * Makes a unary call. Rejects with a GrpcError if the service responds with an error status, with an UpstreamError if there is no
 * response (at once while the circuit is open, see circuit.ts), and with a ProxyError at the deadline of the exchange.
 */
export async function callUnary<I extends DescMessage, O extends DescMessage>(
  destination: Destination,
  method: DescMethodUnary<I, O>,
  message: MessageInitShape<I>,
  options: GrpcOptions = {},
): Promise<MessageShape<O>> {
  const call = start(destination, method, encodeFrame(encodeMessage(method.input, message)), 'body', options)
  const { limitBytes = LIMIT_BYTES } = options
  try {
    const head = await call.response
    checkHead(head)
    const { bytes, trailers } = await readHeldBody(options.exchange, head.body, limitBytes + 5)
    checkStatus(head, trailers)
    const reader = new FrameReader(limitBytes)
    reader.push(bytes)
    const response = reader.next()
    if (response === undefined || !reader.isAtBoundary) throw new Error('expected one whole message')
    const decoded = fromBinary(method.output, response)
    call.record(true)
    return decoded
  } catch (error) {
    throw toFailure(error, destination, call)
  }
}

/** Receives the events of a stream. `onEnd` is called once, last, also if the call could not start; nothing is called after `cancel`. */
export interface GrpcSink<O> {
  onMessage(message: O): void
  /** Undefined for status OK, else an error as in `callUnary`. */
  onEnd(error: Error | undefined): void
  /** After `send` returned false: more messages can be sent. */
  onDrain?(): void
  /** A connection is established and queued messages are sent. */
  onOpen?(): void
}

/** A bidirectional stream. */
export interface GrpcStream<I> {
  /** Queues a message. Returns false if the caller should wait for `onDrain`; the message is sent nevertheless. */
  send(message: I): boolean
  /** Half-closes the stream: no more messages will be sent. */
  end(): void
  /** Applies back-pressure to the service. */
  pause(): void
  resume(): void
  cancel(reason: Error): void
}

/** Opens a bidirectional stream. The sink is not called before this returns. */
export function openStream<I extends DescMessage, O extends DescMessage>(
  destination: Destination,
  method: DescMethodBiDiStreaming<I, O>,
  sink: GrpcSink<MessageShape<O>>,
  options: GrpcOptions = {},
): GrpcStream<MessageInitShape<I>> {
  return new OwnStream(destination, method, sink, options)
}

class OwnStream<I extends DescMessage, O extends DescMessage> implements GrpcStream<MessageInitShape<I>> {
  readonly #destination: Destination
  readonly #method: DescMethodBiDiStreaming<I, O>
  readonly #sink: GrpcSink<MessageShape<O>>
  readonly #outgoing: MessageBody
  readonly #call: StartedCall
  readonly #reader: FrameReader
  #body: Body | undefined
  #isPaused = false
  #isOver = false

  constructor(destination: Destination, method: DescMethodBiDiStreaming<I, O>, sink: GrpcSink<MessageShape<O>>, options: GrpcOptions) {
    this.#destination = destination
    this.#method = method
    this.#sink = sink
    this.#reader = new FrameReader(options.limitBytes ?? LIMIT_BYTES)
    this.#outgoing = new MessageBody(
      () => this.#sink.onDrain?.(),
      () => this.#sink.onOpen?.(),
    )
    this.#call = start(destination, method, this.#outgoing, 'body', options)
    void this.#run()
  }

  send(message: MessageInitShape<I>): boolean {
    return this.#isOver || this.#outgoing.push(encodeFrame(encodeMessage(this.#method.input, message)))
  }

  end(): void {
    if (!this.#isOver) this.#outgoing.end()
  }

  pause(): void {
    this.#isPaused = true
    this.#body?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#body?.resume()
  }

  cancel(reason: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#call.cancel(reason)
  }

  async #run(): Promise<void> {
    try {
      const head = await this.#call.response
      checkHead(head)
      if (head.body === undefined) return this.#finish(head, undefined)
      const body = (this.#body = head.body)
      body.start({
        onData: (chunk) => this.#receive(chunk),
        onEnd: (trailers) => this.#finish(head, trailers),
        onError: (error) => this.#fail(error),
      })
      if (this.#isPaused) body.pause()
    } catch (error) {
      this.#fail(error)
    }
  }

  #receive(chunk: Buffer): void {
    this.#call.answered()
    try {
      this.#reader.push(chunk)
      for (let bytes = this.#reader.next(); bytes !== undefined && !this.#isOver; bytes = this.#reader.next())
        this.#sink.onMessage(fromBinary(this.#method.output, bytes))
    } catch (error) {
      this.#fail(error)
    }
  }

  #finish(head: ResponseHead, trailers: HeaderList | undefined): void {
    try {
      checkStatus(head, trailers)
      if (!this.#reader.isAtBoundary) throw new Error('the last message is cut off')
    } catch (error) {
      return this.#fail(error)
    }
    if (this.#isOver) return
    this.#isOver = true
    this.#call.record(true)
    this.#sink.onEnd(undefined)
  }

  #fail(error: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#call.cancel(new Error('the stream is over'))
    this.#sink.onEnd(toFailure(error, this.#destination, this.#call))
  }
}

/** A request body of the frames that are pushed to it. */
class MessageBody implements Body {
  readonly length = undefined
  readonly #onDrain: () => void
  readonly #onOpen: () => void
  #queue: Buffer[] = []
  #size = 0
  #sink: BodySink | undefined
  #isPaused = false
  #isEnded = false
  #isDone = false
  #isAwaited = false

  constructor(onDrain: () => void, onOpen: () => void) {
    this.#onDrain = onDrain
    this.#onOpen = onOpen
  }

  push(frame: Buffer): boolean {
    if (this.#isDone || this.#isEnded) return true
    if (this.#sink !== undefined && !this.#isPaused && this.#queue.length === 0) this.#sink.onData(frame)
    else {
      this.#queue.push(frame)
      this.#size += frame.length
    }
    this.#isAwaited ||= this.#isPaused || this.#size > HIGH_WATER_BYTES
    return !this.#isAwaited
  }

  end(): void {
    this.#isEnded = true
    this.#flow()
  }

  start(sink: BodySink): void {
    this.#sink = sink
    this.#flow()
    this.#onOpen()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#flow()
  }

  cancel(): void {
    this.#isDone = true
    this.#queue = []
  }

  #flow(): void {
    const sink = this.#sink
    while (sink !== undefined && !this.#isPaused && !this.#isDone) {
      const frame = this.#queue.shift()
      if (frame === undefined) break
      this.#size -= frame.length
      sink.onData(frame)
    }
    if (sink === undefined || this.#isPaused || this.#isDone) return
    if (this.#isEnded) {
      this.#isDone = true
      sink.onEnd(undefined)
    } else if (this.#isAwaited) {
      this.#isAwaited = false
      this.#onDrain()
    }
  }
}

function start(destination: Destination, method: DescMethod, body: Callout['body'], covers: 'head' | 'body', options: GrpcOptions): StartedCall {
  const { timeoutMs, exchange, metadata } = options
  return startCall(
    destination,
    { method: 'POST', target: `/${method.parent.typeName}/${method.name}`, headers: metadata?.clone() ?? new HeaderList(), body, isGrpc: true },
    { timeoutMs, exchange, covers, isGuarded: true, isJudgedByCaller: true },
  )
}

/** Throws a GrpcError unless this is the head of a gRPC response; maps HTTP statuses by gRPC's "HTTP to gRPC Status Code Mapping". */
function checkHead({ status, headers, body }: ResponseHead): void {
  const isGrpc = headers.get('content-type')?.startsWith('application/grpc') === true
  if (status === 200 && isGrpc) return
  body?.cancel()
  if (status === 200) throw new GrpcError(2, `the answer is not gRPC: content-type ${headers.get('content-type') ?? 'missing'}`, headers)
  throw new GrpcError(grpcStatusOf(status), `the answer has HTTP status ${status}`, headers)
}

function checkStatus({ headers, body }: ResponseHead, trailers: HeaderList | undefined): void {
  const last = trailers ?? (body === undefined ? headers : new HeaderList())
  const text = last.get('grpc-status')
  if (text === '0') return
  if (text === undefined || !/^\d{1,2}$/.test(text)) throw new GrpcError(13, `the answer ended without a grpc-status`, last)
  throw new GrpcError(Number(text), decodeMessage(last.get('grpc-message') ?? ''), last)
}

function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Records the failure and converts it. Undecodable responses become UpstreamErrors. A call that failed before its head is already recorded. */
function toFailure(error: unknown, { name }: Destination, call: StartedCall): Error {
  if (error instanceof GrpcError) {
    call.record(isServiceHealthy(error.status))
    return error
  }
  if (error instanceof UpstreamError || error instanceof ProxyError) return error
  call.record(false)
  const text = error instanceof Error ? error.message : String(error)
  return new UpstreamError('protocol', `${name}: ${text}`, error)
}

/** Statuses that mean that the service itself is unhealthy. Others, such as PERMISSION_DENIED, are regular responses. */
const unhealthyStatuses = new Set([2, 4, 8, 12, 13, 14, 15])

function isServiceHealthy(status: number): boolean {
  return !unhealthyStatuses.has(status)
}
