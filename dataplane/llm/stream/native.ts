import { parseJson, isObject } from '../common/json.ts'
import type { ClientEvent, StreamOptions } from '../common/types.ts'
import { JsonEvent, RawEvent, type FindTexts } from './event.ts'
import { parseFields, SseScanner, type SseEvent } from './sse.ts'
import type { SseReader } from './steps.ts'
import { nothing, UpstreamStream } from './upstream.ts'

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
export class NativeStream extends UpstreamStream {
  readonly #format: NativeFormat
  readonly #scanner = new SseScanner()
  readonly #isGuarded: boolean
  readonly #collects: boolean

  constructor(format: NativeFormat, options: StreamOptions = {}) {
    super(options)
    this.#format = format
    this.#isGuarded = options.isGuarded ?? false
    this.#collects = options.collects ?? false
  }

  protected get pending(): number {
    return this.#scanner.pending
  }

  protected get needsTerminator(): boolean {
    return this.#format.reader.needsTerminator
  }

  protected read(chunk: Buffer): readonly ClientEvent[] {
    return this.#pass(this.#scanner.push(chunk))
  }

  protected readRest(): readonly ClientEvent[] {
    const last = this.#scanner.end()
    // Half an event would be an error of its own at the client.
    return last && isReadable(last) ? this.#pass([last]) : nothing
  }

  protected writeEnd(): readonly ClientEvent[] {
    return nothing
  }

  protected writeError(type: string, message: string): readonly ClientEvent[] {
    return [new RawEvent(this.#format.printError(type, message))]
  }

  #pass(events: readonly SseEvent[]): readonly ClientEvent[] {
    const out: ClientEvent[] = []
    for (const { raw } of events) {
      if (this.isOver) break
      const guarded = this.#observe(raw)
      if (!this.#isGuarded) out.push(new RawEvent(raw))
      else if (guarded) out.push(guarded)
    }
    return out
  }

  /** Reads an event for the facts; gives what a guarded stream sends for it. */
  #observe(raw: Buffer): ClientEvent | undefined {
    const { facts } = this.recorder
    const isRead = this.#isGuarded || this.#collects || !facts.hasContent || this.#format.telling.test(raw.toString('latin1'))
    if (!isRead) {
      this.recorder.countDelta()
      return undefined
    }
    const { name, data: text } = parseFields(raw)
    if (text === undefined) return undefined
    // Only what is printed again must keep its numbers.
    const data = this.#isGuarded ? parseLeniently(text) : parsePlain(text)
    for (const step of this.#format.reader.read(name, data, text)) this.recorder.record(step)
    if (facts.isComplete || facts.error) this.close()
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
