import { parseJson, isObject } from '../formats/json.ts'
import type { ClientEvent, ResponseStream, StreamOptions } from '../formats/types.ts'
import { JsonEvent, RawEvent, type FindTexts } from './event.ts'
import { FactsRecorder } from './facts.ts'
import { parseFields, SseScanner, type SseEvent } from './sse.ts'
import type { SseReader } from './steps.ts'

export const MAX_EVENT_BYTES = 2 * 1024 * 1024
export const TRUNCATED = 'the upstream ended the stream before the answer was complete'
const nothing: readonly ClientEvent[] = []

/** What a format brings to its native stream. */
export interface NativeFormat {
  readonly reader: SseReader
  readonly findTexts: FindTexts
  /** Words of an event that matter when the content itself does not: usage, ends, errors. */
  readonly telling: RegExp
  printError(type: string, message: string): string
}

/**
 * A stream that is the client's format already: whole events pass as the bytes they came in, and are read on the side.
 * With guards every event is parsed, and printed again from what was parsed, so that a client reads nothing that guards did not.
 */
export class NativeStream implements ResponseStream {
  readonly contentType = 'text/event-stream'
  readonly #format: NativeFormat
  readonly #scanner = new SseScanner()
  readonly #recorder: FactsRecorder
  readonly #isGuarded: boolean
  readonly #collects: boolean
  readonly #maxEventBytes: number
  #isOver = false

  constructor(format: NativeFormat, { isGuarded = false, collects = false, maxEventBytes = MAX_EVENT_BYTES }: StreamOptions = {}) {
    this.#format = format
    this.#isGuarded = isGuarded
    this.#collects = collects
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
    const events = this.#scanner.push(chunk)
    const out = this.#pass(events)
    if (this.#scanner.pending > this.#maxEventBytes) return [...out, ...this.fail(`an event of the upstream exceeds ${this.#maxEventBytes} bytes`)]
    return out
  }

  end(): readonly ClientEvent[] {
    if (this.#isOver) return nothing
    const last = this.#scanner.end()
    // Half an event would be an error of its own at the client.
    const out = last && isReadable(last) ? this.#pass([last]) : nothing
    if (this.#isOver) return out
    if (!this.#recorder.isFinished || this.#format.reader.needsTerminator) return [...out, ...this.fail(TRUNCATED)]
    this.#isOver = true
    this.facts.isComplete = true
    return out
  }

  fail(message: string, code = 'upstream_error'): readonly ClientEvent[] {
    // A guard that has held a complete stream back may still refuse it.
    if (this.facts.error !== undefined) return nothing
    this.#isOver = true
    this.facts.error = { type: code, message }
    return [new RawEvent(this.#format.printError(code, message))]
  }

  #pass(events: readonly SseEvent[]): readonly ClientEvent[] {
    const out: ClientEvent[] = []
    for (const { raw } of events) {
      if (this.#isOver) break
      const guarded = this.#observe(raw)
      if (!this.#isGuarded) out.push(new RawEvent(raw))
      else if (guarded) out.push(guarded)
    }
    return out
  }

  /** Reads an event for the facts; gives what a guarded stream sends for it. */
  #observe(raw: Buffer): ClientEvent | undefined {
    const { facts } = this.#recorder
    const isRead = this.#isGuarded || this.#collects || !facts.hasContent || this.#format.telling.test(raw.toString('latin1'))
    if (!isRead) {
      this.#recorder.countDelta()
      return undefined
    }
    const { name, data: text } = parseFields(raw)
    if (text === undefined) return undefined
    // Only what is printed again must keep its numbers.
    const data = this.#isGuarded ? parseLeniently(text) : parsePlain(text)
    for (const step of this.#format.reader.read(name, data, text)) this.#recorder.record(step)
    if (facts.isComplete || facts.error) this.#isOver = true
    if (!this.#isGuarded) return undefined
    if (isObject(data)) return new JsonEvent(name, data, this.#format.findTexts)
    return text.trim() === '[DONE]' ? new RawEvent('data: [DONE]\n\n') : undefined
  }
}

function isReadable({ raw }: SseEvent): boolean {
  const { data = '' } = parseFields(raw)
  return data.trim() === '[DONE]' || parseLeniently(data) !== undefined
}

/** For events that are read and not printed again. */
export function parsePlain(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function parseLeniently(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}
