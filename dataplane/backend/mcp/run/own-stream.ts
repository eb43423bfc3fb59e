import { errorText, INTERNAL_ERROR, isRequest, METHOD_NOT_FOUND, parseUpstreamMessage, resultText, type RpcRequest } from '../message/rpc.ts'
import type { EventSource } from '../sse/source.ts'
import type { BridgedCall, OwnMessages } from '../session/bridged.ts'

/** Requests that arrive while the client has no call are kept this long, and up to this number. */
const HELD_MS = 30_000
const MAX_HELD = 16
const INPUTS: ReadonlySet<string> = new Set(['elicitation/create', 'sampling/createMessage', 'roots/list'])

interface Held {
  readonly request: RpcRequest
  readonly timer: NodeJS.Timeout
}

/**
 * The stream of messages that a target with sessions sends on its own. Requests on it name no call, so that the newest call to the target
 * passes them to the client, or the next one.
 */
export class OwnStream implements OwnMessages {
  readonly ready: Promise<void>
  readonly #respond: (text: string) => Promise<void>
  readonly #calls = new Set<BridgedCall>()
  readonly #held: Held[] = []
  #events: EventSource | undefined
  #isClosed = false

  /** `open` resolves with the stream; undefined: the target has none. */
  constructor(open: () => Promise<EventSource | undefined>, respond: (text: string) => Promise<void>) {
    this.#respond = respond
    this.ready = open().then(
      (events) => this.#start(events),
      () => void (this.#isClosed = true),
    )
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  add(call: BridgedCall): void {
    this.#calls.add(call)
    for (const { request, timer } of this.#held.splice(0)) {
      clearTimeout(timer)
      call.receive(request)
    }
  }

  remove(call: BridgedCall): void {
    this.#calls.delete(call)
  }

  close(): void {
    this.#isClosed = true
    this.#events?.cancel()
    for (const { timer } of this.#held.splice(0)) clearTimeout(timer)
  }

  #start(events: EventSource | undefined): void {
    if (events === undefined) return
    if (this.#isClosed) return events.cancel()
    this.#events = events
    events.start({
      onEvent: ({ data }) => {
        const message = data === '' ? undefined : parseUpstreamMessage(data)
        if (message !== undefined && isRequest(message)) this.#receive(message)
      },
      onEnd: () => void (this.#isClosed = true),
      onError: () => void (this.#isClosed = true),
    })
  }

  #receive(request: RpcRequest): void {
    const { id, method } = request
    if (method === 'ping') return this.#send(resultText(id, {}))
    if (!INPUTS.has(method)) return this.#send(errorText(id, METHOD_NOT_FOUND, `Method not found: ${method}`))
    const call = [...this.#calls].at(-1)
    if (call !== undefined) return call.receive(request)
    if (this.#held.length >= MAX_HELD) return this.#send(errorText(id, INTERNAL_ERROR, 'too many requests wait for the client'))
    const timer = setTimeout(() => {
      this.#held.splice(
        this.#held.findIndex((held) => held.request === request),
        1,
      )
      this.#send(errorText(id, INTERNAL_ERROR, 'the client made no call that could pass the request to it'))
    }, HELD_MS).unref()
    this.#held.push({ request, timer })
  }

  #send(text: string): void {
    this.#respond(text).catch(() => undefined)
  }
}
