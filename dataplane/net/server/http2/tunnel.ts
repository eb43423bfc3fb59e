import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import type { Body, BodySink } from '../../../http/body.ts'
import type { Deadlines, Waiter } from '../../../http/deadlines.ts'
import type { UpgradedSocket } from '../../../http/message.ts'

interface TunnelEvents {
  /** No byte has passed in either direction for the time limit. */
  onIdle(): void
  /** The upstream connection is closed. */
  onClosed(): void
}

/**
 * The upstream connection of a tunnel over a stream (RFC 9113 §8.5, RFC 8441): the body of the response is what the upstream sends, and the body of the request is
 * written to it. A half-close is forwarded, an error ends both.
 */
export class Tunnel implements Body, BodySink, Waiter {
  readonly length = undefined
  deadlineMs = Infinity
  readonly #socket: Duplex
  readonly #head: Buffer
  /** What the client sends. */
  readonly #request: Body
  readonly #deadlines: Deadlines
  readonly #idleMs: number
  readonly #events: TunnelEvents
  #sink: BodySink | undefined = undefined

  /** `idleMs`: 0 is no limit. */
  constructor({ socket, head }: UpgradedSocket, request: Body, idleMs: number, deadlines: Deadlines, events: TunnelEvents) {
    this.#socket = socket
    this.#head = head
    this.#request = request
    this.#deadlines = deadlines
    this.#idleMs = idleMs
    this.#events = events
  }

  // What the upstream sends.

  start(sink: BodySink): void {
    this.#sink = sink
    const socket = this.#socket
    if ('allowHalfOpen' in socket) socket.allowHalfOpen = true
    this.#deadlines.add(this)
    this.#onBytes()
    if (this.#head.length > 0) sink.onData(this.#head)
    socket.on('data', (chunk: Buffer) => {
      this.#onBytes()
      this.#sink?.onData(chunk)
    })
    socket.on('drain', () => this.#request.resume())
    socket.on('end', () => this.#end())
    socket.on('error', (error: Error) => this.#fail(error))
    socket.once('close', () => {
      this.#deadlines.remove(this)
      this.#fail(new Error('upstream closed the connection'))
      this.#events.onClosed()
    })
    this.#request.start(this)
    if (socket.destroyed) this.#fail(new Error('upstream closed the connection'))
    else socket.resume()
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  cancel(): void {
    this.#sink = undefined
    abort(this.#socket)
  }

  // What the client sends.

  onData(chunk: Buffer): void {
    this.#onBytes()
    if (!this.#socket.write(chunk)) this.#request.pause()
  }

  onEnd(): void {
    this.#socket.end()
  }

  onError(): void {
    abort(this.#socket)
  }

  expire(): void {
    this.deadlineMs = Infinity
    this.#events.onIdle()
  }

  #onBytes(): void {
    if (this.#idleMs > 0) this.deadlineMs = this.#deadlines.nowMs + this.#idleMs
  }

  #end(): void {
    const sink = this.#sink
    this.#sink = undefined
    sink?.onEnd(undefined)
  }

  #fail(error: Error): void {
    const sink = this.#sink
    this.#sink = undefined
    sink?.onError(error)
  }
}

/** Closes without FIN or close_notify, which would make a partial message look complete. Node cannot reset a socket that has sent FIN. */
function abort(socket: Duplex): void {
  if (socket instanceof Socket && !(socket instanceof TLSSocket) && !socket.destroyed && !socket.writableEnded) socket.resetAndDestroy()
  else socket.destroy()
}
