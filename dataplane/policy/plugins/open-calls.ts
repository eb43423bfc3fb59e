import type { CallStreams } from './streams.ts'
import type { StreamMessage } from './guest/messages.ts'

/** Calls of a plugin that have not ended: their steps, and the bodies that pass the plugin. */
export class OpenCalls {
  readonly #onEmpty: () => void
  readonly #calls = new Map<number, { streams: CallStreams | undefined; isOver: boolean }>()

  constructor(onEmpty: () => void) {
    this.#onEmpty = onEmpty
  }

  get size(): number {
    return this.#calls.size
  }

  add(id: number): void {
    if (!this.#calls.has(id)) this.#calls.set(id, { streams: undefined, isOver: false })
  }

  attach(id: number, streams: CallStreams): void {
    this.#calls.set(id, { streams, isOver: false })
  }

  streams(id: number): CallStreams | undefined {
    return this.#calls.get(id)?.streams
  }

  receive(message: StreamMessage): void {
    this.streams(message.id)?.receive(message)
  }

  /** The last step has ended. Bodies may continue. */
  finish(id: number): void {
    const call = this.#calls.get(id)
    if (call === undefined) return
    call.isOver = true
    if (call.streams?.isOpen !== true) this.#remove(id)
  }

  /** The last body has ended. */
  streamsClosed(id: number): void {
    if (this.#calls.get(id)?.isOver === true) this.#remove(id)
  }

  /** Ends a call, with an error for what reads its bodies. */
  cancel(id: number, error: Error): void {
    this.streams(id)?.fail(error)
    this.#remove(id)
  }

  /** Ends all calls; their number becomes 0 without a report. */
  cancelAll(error: Error): void {
    const calls = [...this.#calls.values()]
    this.#calls.clear()
    for (const { streams } of calls) streams?.fail(error)
  }

  #remove(id: number): void {
    const call = this.#calls.get(id)
    if (call === undefined) return
    this.#calls.delete(id)
    call.streams?.close()
    if (this.#calls.size === 0) this.#onEmpty()
  }
}
