import type { Step } from '../formats/neutral.ts'
import type { ClientEvent, ResponseStream, StreamOptions } from '../formats/types.ts'
import { FactsRecorder } from './facts.ts'
import { FrameScanner, type Frame } from './frames.ts'
import { MAX_EVENT_BYTES, parsePlain, TRUNCATED } from './native.ts'
import { parseFields, SseScanner, type SseEvent } from './sse.ts'
import type { SseReader, StepWriter } from './steps.ts'

const nothing: readonly ClientEvent[] = []

/** Upstream bytes to steps. */
export interface StepSource {
  readonly pending: number
  readonly needsTerminator: boolean
  push(chunk: Buffer): Step[]
  end(): Step[]
}

export function readSse(reader: SseReader): StepSource {
  const scanner = new SseScanner()
  const read = ({ raw }: SseEvent): Step[] => {
    const { name, data } = parseFields(raw)
    return data === undefined ? [] : reader.read(name, parsePlain(data), data)
  }
  return {
    needsTerminator: reader.needsTerminator,
    get pending() {
      return scanner.pending
    },
    push: (chunk) => scanner.push(chunk).flatMap(read),
    end() {
      const last = scanner.end()
      return last ? read(last) : []
    },
  }
}

export function readFrames(reader: { read(frame: Frame): Step[] }, maxBytes: number = MAX_EVENT_BYTES): StepSource {
  const scanner = new FrameScanner(maxBytes)
  return {
    needsTerminator: false,
    get pending() {
      return scanner.pending
    },
    push(chunk) {
      const steps = scanner.push(chunk).flatMap((frame) => reader.read(frame))
      if (scanner.error !== undefined) steps.push({ type: 'error', errorType: 'upstream_error', message: scanner.error })
      return steps
    },
    end: () => [],
  }
}

/** A stream of another format than the client's: bytes to steps to the client's events. */
export class TranslatedStream implements ResponseStream {
  readonly contentType = 'text/event-stream'
  readonly #source: StepSource
  readonly #writer: StepWriter
  readonly #recorder: FactsRecorder
  readonly #maxEventBytes: number
  #isOver = false

  constructor(source: StepSource, writer: StepWriter, { collects = false, maxEventBytes = MAX_EVENT_BYTES }: StreamOptions = {}) {
    this.#source = source
    this.#writer = writer
    this.#maxEventBytes = maxEventBytes
    this.#recorder = new FactsRecorder(collects)
  }

  get facts(): ResponseStream['facts'] {
    return this.#recorder.facts
  }

  get isOver(): boolean {
    return this.#isOver
  }

  push(chunk: Buffer): readonly ClientEvent[] {
    if (this.#isOver) return nothing
    const out = this.#write(this.#source.push(chunk))
    if (this.#source.pending > this.#maxEventBytes) return [...out, ...this.fail(`an event of the upstream exceeds ${this.#maxEventBytes} bytes`)]
    return out
  }

  end(): readonly ClientEvent[] {
    if (this.#isOver) return nothing
    const out = this.#write(this.#source.end())
    if (this.#isOver) return out
    // Some upstreams end after the finish without a terminator.
    const isEnd = this.#recorder.isFinished && this.#source.pending === 0 && !this.#source.needsTerminator
    return isEnd ? [...out, ...this.#write([{ type: 'done' }])] : [...out, ...this.fail(TRUNCATED)]
  }

  fail(message: string, code = 'upstream_error'): readonly ClientEvent[] {
    // A guard that has held a complete stream back may still refuse it.
    if (this.facts.error !== undefined) return nothing
    this.#isOver = false
    return this.#write([{ type: 'error', errorType: code, message }])
  }

  #write(steps: readonly Step[]): ClientEvent[] {
    const out: ClientEvent[] = []
    for (const step of steps) {
      if (this.#isOver) break
      this.#recorder.record(step)
      out.push(...this.#writer.write(step))
      if (step.type === 'done' || step.type === 'error') this.#isOver = true
    }
    return out
  }
}
