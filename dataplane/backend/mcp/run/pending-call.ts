import { createBodyHold } from '../../../request/exchange/held.ts'
import { McpFailure } from '../message/failure.ts'
import { isObject, type JsonObject } from '../message/json.ts'
import {
  errorText,
  idKey,
  INTERNAL_ERROR,
  isAnswerTo,
  isRequest,
  METHOD_NOT_FOUND,
  parseUpstreamMessage,
  resultText,
  toText,
  type RpcMessage,
  type RpcRequest,
} from '../message/rpc.ts'
import type { EventSink, EventSource } from '../sse/source.ts'
import type { CallContext } from '../upstream/call.ts'

/** What a call needs of the request that it was made for. */
export interface PendingCallOptions {
  /** Id and progress token of the call at the target. */
  readonly id: string
  /** Length of the call. It is kept while the call waits, as text, bytes and parsed arguments. */
  readonly size: number
  /** Whether the client responds to such requests. */
  readonly admits: (request: RpcRequest) => boolean
  /** Keeps the call until the retry, and returns the `requestState`; undefined if too many calls wait. */
  readonly wait: () => string | undefined
  /** Sends a response to the target, by default in the context of the first request. */
  readonly respond: (text: string, context?: CallContext) => Promise<void>
  /** Cancels the call at the target. */
  readonly cancel: () => void
  /** The call is over: it has a response for its client, or was cancelled. Called once. */
  readonly onEnd: () => void
}

/** The request of a client that receives the messages of a call: the first one, or a retry. */
interface Consumer {
  /** Id and progress token of the client's request. */
  readonly id: string
  sink: EventSink | undefined
  /** Messages before the start. */
  readonly early: RpcMessage[]
}

/** Maximum number of requests of a target that wait in one call, and of messages before a stream starts. */
const MAX_REQUESTS = 64
const MAX_EARLY = 1000
const COPIES = 3

/**
 * A call at a target with sessions, made for a client without. A request of the target for input ends the client's request with an
 * `input_required` result. The call then waits, with its stream open, for the retry, whose responses go to the target (mcp.md §13.2).
 */
export class PendingCall {
  /** Resolves when the target requires input for the first time. */
  readonly requested: Promise<void>
  readonly #options: PendingCallOptions
  readonly #hold = createBodyHold()
  readonly #requests: RpcRequest[] = []
  /** Requests that the client was sent, by their keys. */
  readonly #asked = new Map<string, RpcRequest>()
  #onRequested: () => void = () => undefined
  #consumer: Consumer | undefined
  /** The one that received the response. Its stream ends with that of the target. */
  #last: Consumer | undefined
  #source: EventSource | undefined
  #hasStarted = false
  /** The response, or how the stream ended without one. */
  #answer: RpcMessage | undefined
  #failure: Error | undefined
  #hasEnded = false
  #isAsking = false
  #count = 0
  #isOver = false

  constructor(options: PendingCallOptions) {
    this.#options = options
    this.requested = new Promise((resolve) => (this.#onRequested = resolve))
  }

  /** Whether the call goes on without the request that it was made for. */
  get hasWaited(): boolean {
    return this.#count > 0
  }

  /** Sets the stream of the target's response. */
  follow(source: EventSource): void {
    this.#source = source
    if (this.#isOver) source.cancel()
    else if (this.#consumer?.sink !== undefined || this.hasWaited) this.#startSource()
  }

  /** Sets the response of a target without a stream. */
  finishWith(answer: RpcMessage): void {
    this.#onMessage(answer)
  }

  fail(error: Error): void {
    if (this.#isOver || this.#answer !== undefined) return
    this.#failure ??= error
    this.#advance()
  }

  /** The messages of the call for a client's request: notifications, then its response or an `input_required` result. */
  attach(id: string): EventSource {
    const own: Consumer = (this.#consumer = { id, sink: undefined, early: [] })
    return {
      start: (sink) => {
        if (this.#consumer !== own) return
        own.sink = sink
        for (const message of own.early.splice(0)) this.#pass(message)
        this.#startSource()
        this.#advance()
      },
      pause: () => {
        if (this.#consumer === own) this.#source?.pause()
      },
      resume: () => {
        if (this.#consumer === own) this.#source?.resume()
      },
      // The client disconnected.
      cancel: () => {
        if (this.#consumer === own) this.abort()
        else if (this.#last === own) this.#source?.cancel()
      },
    }
  }

  /**
   * Sends the client's responses to the target. Resolves with the messages for the retry; inputs that are missing are required again. Rejects
   * like `respond`; the call is over then.
   */
  async resume(responses: JsonObject, id: string, context?: CallContext): Promise<EventSource> {
    const asked = [...this.#asked]
    this.#asked.clear()
    this.#requests.unshift(...asked.filter(([key]) => !isObject(responses[key])).map(([, request]) => request))
    const events = this.attach(id)
    try {
      const answered = asked.filter(([key]) => isObject(responses[key]))
      await Promise.all(answered.map(([key, request]) => this.#options.respond(resultText(request.id, responses[key]), context)))
    } catch (error) {
      this.abort()
      throw error
    }
    return events
  }

  /** A request of the target, from the stream of the call or from that of the session. */
  receive(request: RpcRequest): void {
    if (this.#isOver || this.#answer !== undefined) return this.#reject(request, 'the call has ended')
    if (!this.#options.admits(request)) return this.#reject(request, `${request.method} cannot be sent: the client does not support it`, METHOD_NOT_FOUND)
    if (this.#requests.length + this.#asked.size >= MAX_REQUESTS) return this.#reject(request, 'too many requests wait for the client')
    this.#requests.push(request)
    this.#onRequested()
    this.#advance()
  }

  /** No retry came in time. */
  expire(): void {
    this.abort()
  }

  /** Ends the call. Its response reaches the client on another way. */
  forget(): void {
    this.#end()
  }

  /** Ends the call, at the target too. */
  abort(): void {
    if (this.#isOver) return
    const isRunning = this.#answer === undefined && this.#failure === undefined && !this.#hasEnded
    this.#end()
    this.#source?.cancel()
    if (isRunning) this.#options.cancel()
  }

  #reject({ id }: RpcRequest, message: string, code = INTERNAL_ERROR): void {
    this.#options.respond(errorText(id, code, message)).catch(() => undefined)
  }

  #startSource(): void {
    const source = this.#source
    if (source === undefined || this.#hasStarted) return
    this.#hasStarted = true
    source.start({
      onEvent: ({ data }) => {
        const message = data === '' ? undefined : parseUpstreamMessage(data)
        if (message !== undefined) this.#onMessage(message)
      },
      onEnd: () => {
        this.#hasEnded = true
        this.#last?.sink?.onEnd()
        this.#advance()
      },
      onError: (error) => {
        this.#last?.sink?.onError(error)
        this.fail(error)
      },
    })
  }

  #onMessage(message: RpcMessage): void {
    if (this.#isOver || this.#answer !== undefined) return
    if (isRequest(message)) {
      if (message.method === 'ping') return void this.#options.respond(resultText(message.id, {})).catch(() => undefined)
      return this.receive(message)
    }
    if (message.method === 'notifications/cancelled' && this.#withdraw(message.params?.['requestId'])) return
    if (isAnswerTo(message, this.#options.id)) {
      this.#answer = message
      // The response may wait for the retry for minutes.
      if (this.#consumer === undefined) this.#failure = this.#hold.reserve(toText(message).length)
      return this.#advance()
    }
    this.#pass(message)
  }

  /** The target no longer needs the response to its request. */
  #withdraw(requestId: unknown): boolean {
    const isMeant = ({ id }: RpcRequest): boolean => idKey(id) === idKey(requestId)
    const index = this.#requests.findIndex(isMeant)
    if (index !== -1) this.#requests.splice(index, 1)
    const [key] = [...this.#asked].find(([, request]) => isMeant(request)) ?? []
    if (key !== undefined) this.#asked.delete(key)
    return index !== -1 || key !== undefined
  }

  /** Notifications while the call waits are lost: the request that they belong to has ended. */
  #pass(message: RpcMessage): void {
    const consumer = this.#consumer
    if (consumer === undefined) return
    if (consumer.sink !== undefined) consumer.sink.onEvent({ data: toText(this.#addressed(message, consumer.id)) })
    else if (consumer.early.length < MAX_EARLY) consumer.early.push(message)
  }

  #addressed(message: RpcMessage, id: string): RpcMessage {
    if (message.method === undefined) return { ...message, id }
    if (message.method !== 'notifications/progress' || message.params?.['progressToken'] !== this.#options.id) return message
    return { ...message, params: { ...message.params, progressToken: id } }
  }

  /** Sends the client what there is for it: the response, the failure, or the request for input. */
  #advance(): void {
    const consumer = this.#consumer
    const sink = consumer?.sink
    if (sink === undefined || this.#isOver) return
    if (this.#failure !== undefined) {
      this.#end()
      return sink.onError(this.#failure)
    }
    if (this.#answer !== undefined) {
      this.#pass(this.#answer)
      this.#end()
      // The reader of the stream lets that of the target end.
      this.#last = consumer
      if (this.#source === undefined || this.#hasEnded) sink.onEnd()
      return
    }
    if (this.#hasEnded) {
      this.#end()
      return sink.onEnd()
    }
    if (this.#requests.length === 0 || this.#isAsking) return
    this.#isAsking = true
    // Requests that the target sent together are one round.
    setImmediate(() => {
      this.#isAsking = false
      this.#ask()
    })
  }

  #ask(): void {
    const consumer = this.#consumer
    if (consumer?.sink === undefined || this.#isOver || this.#requests.length === 0) return
    const excess = this.hasWaited ? undefined : this.#hold.reserve(COPIES * this.#options.size)
    if (excess !== undefined) {
      consumer.sink.onError(excess)
      return this.abort()
    }
    for (const request of this.#requests.splice(0)) this.#asked.set(`input_${++this.#count}`, request)
    const requestState = this.#options.wait()
    if (requestState === undefined) {
      consumer.sink.onError(McpFailure.rpc(INTERNAL_ERROR, 'too many calls wait for input of clients: try again later'))
      return this.abort()
    }
    const inputRequests = Object.fromEntries([...this.#asked].map(([key, request]) => [key, toInputRequest(request)]))
    const { sink, id } = consumer
    this.#consumer = undefined
    // A slow client may have paused the stream.
    this.#source?.resume()
    sink.onEvent({ data: toText({ jsonrpc: '2.0', id, result: { resultType: 'input_required', inputRequests, requestState } }) })
    sink.onEnd()
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#consumer = undefined
    this.#hold.release()
    this.#options.onEnd()
  }
}

/** A request of a server as an entry of `inputRequests`. The revision has no ids of elicitations, and the client no way to report progress. */
function toInputRequest({ method, params }: RpcRequest): JsonObject {
  if (params === undefined) return { method }
  const { elicitationId: _, _meta: meta, ...rest } = params
  const { progressToken: _token, ...kept } = isObject(meta) ? meta : {}
  return { method, params: { ...rest, ...(Object.keys(kept).length > 0 && { _meta: kept }) } }
}
