import { idKey, parseUpstreamMessage, type RpcId, type RpcMessage } from '../message/rpc.ts'
import type { SseEvent } from '../sse/parser.ts'
import type { EventSink, EventSource } from '../sse/source.ts'
import type { MessageLabel } from './call.ts'

/** Messages without a listener are kept for the next GET, up to this number. */
const MAX_KEPT = 64

/** A request whose response has not arrived. */
interface PendingRequest {
  /** Key of the token of its progress notifications; undefined if it wants none. */
  readonly progressKey: string | undefined
  /** The request receives log messages: its client has no other stream. */
  readonly takesLogs: boolean
  onProgress(event: SseEvent): void
  onAnswer(event: SseEvent): void
  onError(error: Error): void
}

/** A session has two concurrent requests with one id, so their responses would be ambiguous. */
export class DuplicateIdError extends Error {}

/** Assigns the messages on the one stream of a connection to requests, and the others to a listener. */
export class Correlator {
  readonly #pending = new Map<string, PendingRequest>()
  readonly #kept: SseEvent[] = []
  #listener: EventSink | undefined
  #isClosed = false

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Messages that the server sends on its own. A new listener replaces the previous one. */
  listen(): EventSource {
    let own: EventSink | undefined
    return {
      start: (sink) => {
        this.#listener?.onEnd()
        own = this.#listener = sink
        if (this.#isClosed) return sink.onEnd()
        for (const event of this.#kept.splice(0)) sink.onEvent(event)
      },
      // Pausing would delay responses to others on the same stream. A slow listener is ended by its own limit.
      pause() {},
      resume() {},
      cancel: () => {
        if (this.#listener === own) this.#listener = undefined
      },
    }
  }

  /** Number of requests whose response has not arrived. */
  get pendingCount(): number {
    return this.#pending.size
  }

  /** Events of one request: its progress notifications, then its response. `takesLogs`: log messages too, if it is the newest such request. */
  expect(id: RpcId, { progressToken, takesLogs = false }: Pick<MessageLabel, 'progressToken' | 'takesLogs'> = {}): EventSource {
    const key = idKey(id)
    if (this.#pending.has(key)) throw new DuplicateIdError(`a request with id ${key} is under way`)
    let sink: EventSink | undefined
    const early: ((receiver: EventSink) => void)[] = []
    const deliver = (step: (receiver: EventSink) => void): void => {
      if (sink === undefined) early.push(step)
      else step(sink)
    }
    const pending: PendingRequest = {
      progressKey: progressToken === undefined ? undefined : idKey(progressToken),
      takesLogs,
      onProgress: (event) => deliver((receiver) => receiver.onEvent(event)),
      onAnswer: (event) =>
        deliver((receiver) => {
          receiver.onEvent(event)
          receiver.onEnd()
        }),
      onError: (error) => deliver((receiver) => receiver.onError(error)),
    }
    this.#pending.set(key, pending)
    return {
      start(receiver) {
        sink = receiver
        for (const step of early.splice(0)) step(receiver)
      },
      pause() {},
      resume() {},
      // Another request may have the id by now.
      cancel: () => {
        if (this.#pending.get(key) === pending) this.#pending.delete(key)
      },
    }
  }

  /** Passes a message of the server on. */
  dispatch(event: SseEvent): void {
    const message = parseUpstreamMessage(event.data)
    if (message === undefined) return
    if (message.method === undefined) {
      const key = idKey(message.id)
      const pending = this.#pending.get(key)
      this.#pending.delete(key)
      pending?.onAnswer(event)
      return
    }
    const reported = this.#receiverOf(message)
    if (reported !== undefined) return reported.onProgress(event)
    if (this.#listener !== undefined) return this.#listener.onEvent(event)
    this.#kept.push(event)
    if (this.#kept.length > MAX_KEPT) this.#kept.shift()
  }

  /** The request that a notification is for; undefined if it is for the listener. */
  #receiverOf({ method, params }: RpcMessage): PendingRequest | undefined {
    if (method === 'notifications/progress') return this.#pendingWith(params?.['progressToken'])
    return method === 'notifications/message' ? [...this.#pending.values()].findLast(({ takesLogs }) => takesLogs) : undefined
  }

  /** The request that progress is reported for (mcp.md §4.3). */
  #pendingWith(progressToken: unknown): PendingRequest | undefined {
    if (progressToken === undefined) return undefined
    const key = idKey(progressToken)
    for (const pending of this.#pending.values()) if (pending.progressKey === key) return pending
    return undefined
  }

  /** Ends all requests and the listener. */
  fail(error: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const pending of this.#pending.values()) pending.onError(error)
    this.#pending.clear()
    this.#listener?.onEnd()
    this.#listener = undefined
  }
}
