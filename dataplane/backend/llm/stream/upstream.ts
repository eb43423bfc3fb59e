import type { ClientEvent, ResponseStream, StreamOptions } from '../common/types.ts'
import { FactsRecorder } from './facts.ts'

/** Default limit of a single event or frame. */
export const MAX_EVENT_BYTES = 2 * 1024 * 1024
const TRUNCATED = 'the upstream ended the stream before the response was complete'
/** No events. */
export const nothing: readonly ClientEvent[] = []

/** Base of native and translated streams: facts, the end, and the size limit of single events. */
export abstract class UpstreamStream implements ResponseStream {
  protected readonly recorder: FactsRecorder
  readonly #maxEventBytes: number
  #isOver = false

  constructor({ collects = false, maxEventBytes = MAX_EVENT_BYTES }: StreamOptions = {}) {
    this.recorder = new FactsRecorder(collects)
    this.#maxEventBytes = maxEventBytes
  }

  /** Bytes of the incomplete event. */
  protected abstract readonly pending: number
  /** The stream is complete only with its terminator. */
  protected abstract readonly needsTerminator: boolean
  protected abstract read(chunk: Buffer): readonly ClientEvent[]
  /** Reads the last event of a body without final blank line. */
  protected abstract readRest(): readonly ClientEvent[]
  /** Writes the client's terminator, if the upstream sent none. */
  protected abstract writeEnd(): readonly ClientEvent[]
  protected abstract writeError(type: string, message: string): readonly ClientEvent[]

  get facts(): ResponseStream['facts'] {
    return this.recorder.facts
  }

  get isOver(): boolean {
    return this.#isOver
  }

  push(chunk: Buffer): readonly ClientEvent[] {
    if (this.#isOver) return nothing
    const out = this.read(chunk)
    if (this.pending > this.#maxEventBytes) return [...out, ...this.fail(`an event of the upstream exceeds ${this.#maxEventBytes} bytes`)]
    return out
  }

  relay(_chunk: Buffer): boolean {
    return false
  }

  end(): readonly ClientEvent[] {
    if (this.#isOver) return nothing
    const out = this.readRest()
    if (this.#isOver) return out
    if (this.facts.isComplete) {
      this.close()
      return out
    }
    // Some upstreams end after the finish reason, without a terminator.
    if (!this.recorder.isFinished || this.needsTerminator || this.pending > 0) return [...out, ...this.fail(TRUNCATED)]
    this.facts.isComplete = true
    this.close()
    return [...out, ...this.writeEnd()]
  }

  fail(message: string, code = 'upstream_error'): readonly ClientEvent[] {
    // A guard that held back a complete stream may still reject it.
    if (this.facts.error !== undefined) return nothing
    this.facts.error = { type: code, message }
    this.close()
    return this.writeError(code, message)
  }

  protected close(): void {
    this.#isOver = true
  }
}
