import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  ExternalProcessor,
  type ProcessingRequestSchema,
  type ImmediateResponse,
  type ProcessingResponse,
} from '#gen/proto/envoy/service/ext_proc/v3/external_processor_pb.js'
import { openStream, type GrpcStream } from '../../net/callout/grpc.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { HeaderList } from '../../http/headers.ts'
import { beginCall, type OutboundCall } from '../../observe/telemetry/metrics/call.ts'
import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import type { Destination } from '../../net/upstream/destination.ts'
import { UpstreamError } from '../../net/upstream/types.ts'
import type { Direction, ProcessorMessage, Reply } from './messages.ts'
import { wireModes, type Modes } from './modes.ts'

/** Receives the replies for a streaming body. */
export interface Streaming {
  /** Processes a reply to body or trailers. Returns false if the reply is for another direction. */
  receive(reply: Reply, message: ProcessingResponse): boolean
  fail(error: Error): void
  drained(): void
  opened(): void
}

/** `metadata_context`: namespace -> values. */
export type Metadata = Record<string, Record<string, string>>

interface Waiting {
  readonly kind: ProcessorMessage['case']
  readonly resolve: (message: ProcessingResponse) => void
  readonly reject: (error: Error) => void
}

/** The processor responds to the client in place of the upstream. */
export class ImmediateAnswer extends Error {
  readonly response: ImmediateResponse
  constructor(response: ImmediateResponse) {
    super('the processor answered')
    this.response = response
  }
}

/**
 * One stream to the processor: requests in order with at most one reply each, and streaming bodies in between. The first of them opens
 * the stream, so that a message of which no part is sent costs no call.
 */
export class ProcessorSession {
  readonly #exchange: Exchange
  readonly #destination: Destination
  readonly #registry: Registry
  readonly #modes: Modes
  readonly #timeoutMs: number | undefined
  readonly #streamings = new Set<Streaming>()
  readonly #ignored = new Set<Reply['case']>()
  #stream: GrpcStream<MessageInitShape<typeof ProcessingRequestSchema>> | undefined
  #call: OutboundCall | undefined
  #waiting: Waiting | undefined
  #holds = 0
  #isFirst = true
  #isOpen = false
  #isEnding = false
  /** Why the stream failed. */
  failure: Error | undefined
  /** The processor closed the stream without an error: the exchange continues without it. */
  isOver = false
  immediate: ImmediateResponse | undefined

  constructor(exchange: Exchange, destination: Destination, modes: Modes, timeoutMs: number | undefined, registry: Registry) {
    this.#exchange = exchange
    this.#destination = destination
    this.#registry = registry
    this.#modes = modes
    this.#timeoutMs = timeoutMs
  }

  #open(): GrpcStream<MessageInitShape<typeof ProcessingRequestSchema>> {
    const exchange = this.#exchange
    const destination = this.#destination
    const { process } = ExternalProcessor.method
    this.#call = beginCall(this.#registry, exchange, 'Policy', 'ExtProc', { host: destination.name, path: `/${process.parent.typeName}/${process.name}` })
    const { traceparent } = this.#call
    return openStream(
      destination,
      process,
      {
        onMessage: (message) => this.#receive(message),
        onEnd: (error) => this.#end(error),
        onDrain: () => this.#each((streaming) => streaming.drained()),
        onOpen: () => {
          this.#isOpen = true
          this.#each((streaming) => streaming.opened())
        },
      },
      { exchange, limitBytes: Infinity, metadata: traceparent === undefined ? undefined : new HeaderList(['traceparent', traceparent]) },
    )
  }

  /** Sends a message. Returns false if the sender should wait for `drained`. */
  send(message: ProcessorMessage, metadata?: Metadata): boolean {
    // Trailers of a request can follow when the session has failed.
    if (this.#stream === undefined && this.failure !== undefined) return true
    this.#stream ??= this.#open()
    const { request, response } = this.#modes
    const protocolConfig = { requestBodyMode: wireModes[request.body], responseBodyMode: wireModes[response.body] }
    const isFirst = this.#isFirst
    this.#isFirst = false
    return this.#stream.send({
      request: message,
      ...(isFirst ? { protocolConfig } : {}),
      ...(metadata === undefined ? {} : { metadataContext: { filterMetadata: metadata } }),
    })
  }

  /** Sends a message and waits for its reply. Rejects with an ImmediateAnswer or with the error of the stream. */
  async call(message: ProcessorMessage, metadata?: Metadata): Promise<ProcessingResponse> {
    this.send(message, metadata)
    return this.await(message.case)
  }

  await(kind: ProcessorMessage['case']): Promise<ProcessingResponse> {
    if (this.immediate !== undefined) return Promise.reject(new ImmediateAnswer(this.immediate))
    if (this.failure !== undefined) return Promise.reject(this.failure)
    return new Promise((resolve, reject) => {
      const timer =
        this.#timeoutMs === undefined
          ? undefined
          : setTimeout(() => this.fail(new UpstreamError('connect-timeout', `no reply within ${this.#timeoutMs} ms`)), this.#timeoutMs)
      this.#waiting = {
        kind,
        resolve: (message) => (clearTimeout(timer), resolve(message)),
        reject: (error) => (clearTimeout(timer), reject(error)),
      }
    })
  }

  add(streaming: Streaming): void {
    if (this.failure !== undefined) return streaming.fail(this.failure)
    this.#stream ??= this.#open()
    this.#streamings.add(streaming)
    if (this.#isOpen) streaming.opened()
  }

  /** Ignores pending replies for a body that was dropped. */
  ignore(direction: Direction): void {
    this.#ignored.add(`${direction}Body`)
    this.#ignored.add(`${direction}Trailers`)
  }

  /** Removes a body that ended. */
  remove(streaming: Streaming): void {
    this.#streamings.delete(streaming)
    if (this.#isEnding) this.finish()
  }

  /** Keeps the stream open until the returned function is called. */
  hold(): () => void {
    this.#holds++
    return () => {
      this.#holds--
      if (this.#isEnding) this.finish()
    }
  }

  /** Ends the stream when the last streaming body ended. No more messages are sent. */
  finish(): void {
    this.#isEnding = true
    if (this.#streamings.size === 0 && this.#holds === 0) this.#stream?.end()
  }

  /** Cancels the stream. */
  abandon(reason: Error): void {
    this.failure ??= reason
    this.#call?.end({ error: reason })
    this.#stream?.cancel(reason)
    this.#waiting?.reject(reason)
    this.#waiting = undefined
  }

  #receive(message: ProcessingResponse): void {
    this.#call?.end({ status: 200 })
    const { response } = message
    if (response.case === 'immediateResponse') return this.#answer(response.value)
    for (const streaming of this.#streamings) if (streaming.receive(response, message)) return
    if (this.#ignored.has(response.case)) return
    const waiting = this.#waiting
    if (waiting === undefined || waiting.kind !== response.case)
      return this.fail(new UpstreamError('protocol', `unexpected reply: ${response.case ?? 'empty'}`))
    this.#waiting = undefined
    waiting.resolve(message)
  }

  #answer(immediate: ImmediateResponse): void {
    this.immediate = immediate
    const answer = new ImmediateAnswer(immediate)
    this.#waiting?.reject(answer)
    this.#waiting = undefined
    this.#each((streaming) => streaming.fail(answer))
    this.#stream?.end()
  }

  #end(error: Error | undefined): void {
    this.#call?.end(error === undefined ? { status: 200 } : { error })
    if (error !== undefined) return this.fail(error)
    this.isOver = true
    if (this.#waiting !== undefined || this.#streamings.size > 0) this.fail(new UpstreamError('protocol', 'the processor ended the stream without a reply'))
  }

  /** Ends the stream because the processor cannot be used any more. */
  fail(error: Error): void {
    if (this.failure !== undefined || this.immediate !== undefined) return
    this.failure = error
    this.#stream?.cancel(error)
    this.#waiting?.reject(error)
    this.#waiting = undefined
    this.#each((streaming) => streaming.fail(error))
  }

  #each(call: (streaming: Streaming) => void): void {
    for (const streaming of this.#streamings) call(streaming)
  }
}
