import type { Http2Stream } from './stream.ts'

/** Streams of a connection that have frames to send, in round robin: each sends at most one DATA frame before the next stream. */
export class ReadyQueue {
  readonly #ready: Http2Stream[] = []
  /** Streams that wait for the window of the connection. */
  #blocked: Http2Stream[] = []

  /** Adds a stream, once. */
  add(stream: Http2Stream): void {
    if (stream.isScheduled) return
    stream.isScheduled = true
    this.#ready.push(stream)
  }

  /** The window of the connection was increased. */
  unblock(): void {
    const blocked = this.#blocked
    if (blocked.length === 0) return
    this.#blocked = []
    for (const stream of blocked) if (!stream.isClosed) this.add(stream)
  }

  /** Lets the streams write as long as `hasSpace`. Returns whether streams are left. */
  write(hasSpace: () => boolean): boolean {
    const ready = this.#ready
    let at = 0
    while (at < ready.length && hasSpace()) {
      const stream = ready[at++]
      if (stream === undefined) break
      stream.isScheduled = false
      if (stream.isClosed) continue
      const result = stream.writeFrames()
      if (result === 'connection') this.#blocked.push(stream)
      else if (result === 'more') this.add(stream)
    }
    if (at < ready.length) {
      ready.splice(0, at)
      return true
    }
    ready.length = 0
    return false
  }
}
