import { randomUUID } from 'node:crypto'
import { isObject, type JsonObject } from '../message/json.ts'
import { refusedInput } from '../message/modern.ts'
import { errorText, INTERNAL_ERROR, isAnswerTo, isNotification, isResponse, parseUpstreamMessage, toText, type RpcId, type RpcMessage } from '../message/rpc.ts'
import type { EventSink, EventSource } from '../sse/source.ts'
import type { LinkAnswer, LinkState } from './link.ts'

/** Requests whose result may be that input of the client is required. */
const METHODS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])
/** Maximum number of rounds of one call, and of inputs of one round. */
const MAX_ROUNDS = 16
const MAX_INPUTS = 64

export const hasRounds = (method: string): boolean => METHODS.has(method)

/** What rounds need of the call that they belong to. */
export interface RoundContext {
  readonly state: LinkState
  readonly id: RpcId
  /** Text of the client's request. */
  readonly text: string
  /** Sends the request again, with the id of the retry. The answer is not read. */
  readonly send: (text: string, id: RpcId) => Promise<LinkAnswer>
  /** Text of the message that a rejection or a JSON body holds. */
  readonly read: (answer: LinkAnswer) => Promise<string>
  /** What the client declared. */
  readonly capabilities: JsonObject
  /** A response as the client knows it. */
  readonly convert: (message: RpcMessage) => RpcMessage
}

/** The result of a response, if it says that input is required. */
export function inputRequired({ method, result }: RpcMessage): JsonObject | undefined {
  return method === undefined && isObject(result) && result['resultType'] === 'input_required' ? result : undefined
}

/** Delivers the response of a client to a request of `roundsOf`. Others are ignored: their call has ended. */
export function deliverInput({ inputs }: LinkState, text: string): void {
  const message = parseUpstreamMessage(text)
  if (message !== undefined && typeof message.id === 'string') inputs?.get(message.id)?.(message)
}

/**
 * The events of a call of a client with a session: each result that requires input becomes requests to the client, and its responses a retry
 * of the call (mcp.md §13.4). `first` is the answer to the call.
 */
export function roundsOf(context: RoundContext, first: EventSource | RpcMessage): EventSource {
  return new Rounds(context, first)
}

class Rounds implements EventSource {
  readonly #context: RoundContext
  readonly #first: EventSource | RpcMessage
  readonly #waiting = new Set<string>()
  #source: EventSource | undefined
  #sink: EventSink | undefined
  /** Id of the request that the target responds to: the call, then its retries. */
  #expected: RpcId
  #count = 0
  #isClosed = false
  #isBehind = false

  constructor(context: RoundContext, first: EventSource | RpcMessage) {
    this.#context = context
    this.#expected = context.id
    this.#first = first
    if ('start' in first) this.#source = first as EventSource
  }

  start(sink: EventSink): void {
    this.#sink = sink
    if (this.#source === undefined) this.#onMessage(this.#first as RpcMessage)
    else this.#attach(this.#source)
  }

  pause(): void {
    this.#isBehind = true
    this.#source?.pause()
  }

  resume(): void {
    this.#isBehind = false
    this.#source?.resume()
  }

  cancel(): void {
    this.#close()
    this.#source?.cancel()
  }

  #close(): void {
    this.#isClosed = true
    for (const id of this.#waiting) this.#context.state.inputs?.delete(id)
    this.#waiting.clear()
  }

  #attach(source: EventSource): void {
    this.#source = source
    if (this.#isBehind) source.pause()
    source.start({
      onEvent: ({ data }) => {
        if (data === '' || source !== this.#source) return
        const message = parseUpstreamMessage(data)
        if (message === undefined || isNotification(message)) this.#sink?.onEvent({ data })
        // The revision has no requests of servers.
        else if (isResponse(message)) this.#onMessage(message)
      },
      onEnd: () => {
        if (source !== this.#source) return
        this.#close()
        this.#sink?.onEnd()
      },
      onError: (error) => {
        if (source !== this.#source) return
        this.#close()
        this.#sink?.onError(error)
      },
    })
  }

  /** A response on the stream of the call, or of its retry. */
  #onMessage(message: RpcMessage): void {
    // Another server, or a confused one, may respond to other requests.
    if (!isAnswerTo(message, this.#expected)) {
      if (this.#source === undefined) this.#reject('an upstream responded to another request')
      return
    }
    const required = inputRequired(message)
    if (required === undefined) return this.#finish(toText({ ...this.#context.convert(message), id: this.#context.id }))
    const source = this.#source
    this.#source = undefined
    source?.cancel()
    this.#request(required).catch((error: unknown) => this.#fail(error instanceof Error ? error : new Error(String(error))))
  }

  async #request(required: JsonObject): Promise<void> {
    const { inputRequests, requestState } = required
    const requests = Object.entries(isObject(inputRequests) ? inputRequests : {})
    if (++this.#count > MAX_ROUNDS || requests.length > MAX_INPUTS) return this.#reject('an upstream requires too much input')
    const refused = refusedInput(required, this.#context.capabilities)
    if (refused !== undefined) return this.#reject(refused)
    const responses = await Promise.all(requests.map(([key, request]) => this.#requestInput(key, request)))
    if (this.#isClosed) return
    const failed = responses.find(({ error }) => error !== undefined)
    if (failed !== undefined) return this.#finish(toText({ jsonrpc: '2.0', id: this.#context.id, error: failed.error }))
    const { text, send, read } = this.#context
    const original = parseUpstreamMessage(text)
    const id = `proxy_retry_${randomUUID()}`
    this.#expected = id
    const inputResponses = Object.fromEntries(responses.map(({ key, result }) => [key, result]))
    const params = { ...original?.params, inputResponses, ...(requestState !== undefined && { requestState }) }
    const answer = await send(toText({ ...original, id, params }), id)
    if (this.#isClosed) return answer.kind === 'events' ? answer.events.cancel() : undefined
    if (answer.kind === 'events') return this.#attach(answer.events)
    const message = parseUpstreamMessage(await read(answer))
    if (message === undefined) return this.#reject('an upstream responded with no message')
    this.#onMessage(message)
  }

  /** Sends one request to the client. Resolves with its response: a declined elicitation is a result too. */
  async #requestInput(key: string, request: unknown): Promise<{ key: string; result?: unknown; error?: unknown }> {
    const id = `input_${randomUUID()}`
    const { method, params } = isObject(request) ? request : {}
    this.#waiting.add(id)
    const response = new Promise<RpcMessage>((resolve) => (this.#context.state.inputs ??= new Map()).set(id, resolve))
    this.#sink?.onEvent({ data: toText({ jsonrpc: '2.0', id, method, ...(isObject(params) && { params: withElicitationId(params, id) }) }) })
    const { result, error } = await response
    this.#waiting.delete(id)
    this.#context.state.inputs?.delete(id)
    if (error !== undefined && method === 'elicitation/create') return { key, result: { action: 'cancel' } }
    return error === undefined ? { key, result } : { key, error }
  }

  #fail(error: Error): void {
    if (this.#isClosed) return
    this.#close()
    this.#sink?.onError(error)
  }

  #reject(message: string): void {
    this.#finish(errorText(this.#context.id, INTERNAL_ERROR, message))
  }

  #finish(text: string): void {
    if (this.#isClosed) return
    this.#sink?.onEvent({ data: text })
    // A stream ends on its own.
    if (this.#source !== undefined) return
    this.#close()
    this.#sink?.onEnd()
  }
}

/** Older revisions identify an elicitation by URL. */
const withElicitationId = (params: JsonObject, id: string): JsonObject =>
  params['mode'] === 'url' && params['elicitationId'] === undefined ? { ...params, elicitationId: id } : params
