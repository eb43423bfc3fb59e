import { doubles, parseJson as parse } from '#api/json/index.ts'
import { parseJson, isObject } from '../common/json.ts'
import type { ClientEvent, JsonObject, StreamOptions } from '../common/types.ts'
import { measureStrings } from './measure.ts'
import { JsonEvent, RawEvent, type FindTexts } from './event.ts'
import { parseFields, SseScanner, type SseEvent } from './sse.ts'
import type { SseReader } from './steps.ts'
import { nothing, UpstreamStream } from './upstream.ts'

const LF = 0x0a

/** The format-specific parts of a native stream. */
export interface NativeFormat {
  readonly reader: SseReader
  readonly findTexts: FindTexts
  /** Matches events that must be read even if the content is not: usage, ends, errors. */
  readonly significant: RegExp
  /** Matches the members with text and arguments of tools, as `measureStrings` reads them; undefined: events must be parsed to measure their text. */
  readonly texts?: RegExp
  /** Some upstreams send `[DONE]` after the terminator of the format; it passes. */
  readonly mayEndWithDone?: boolean
  printError(type: string, message: string): string
  /** Corrects an event; undefined if it is right. The bytes of events that are right pass unchanged. */
  amend?(data: JsonObject): JsonObject | undefined
  /** Restores the client's names of tools in an event; the same object if it has none. */
  rename(data: JsonObject, names: ReadonlyMap<string, string>): JsonObject
}

/** Options of a native stream. */
interface NativeOptions extends StreamOptions {
  /** Names of tools at the upstream -> of the client. Absent if all are equal, so that events can pass unread. */
  readonly toolNames?: ReadonlyMap<string, string>
}

/**
 * A stream that is in the client's format already. Events pass unchanged and are read for the facts. With guards, every event is
 * parsed and printed again, so that the client reads exactly what the guards checked.
 */
export class NativeStream extends UpstreamStream {
  readonly #format: NativeFormat
  readonly #scanner = new SseScanner()
  readonly #isGuarded: boolean
  readonly #collects: boolean
  readonly #measures: boolean
  readonly #toolNames: ReadonlyMap<string, string> | undefined

  constructor(format: NativeFormat, options: NativeOptions = {}) {
    super(options)
    this.#format = format
    this.#isGuarded = options.isGuarded ?? false
    this.#collects = options.collects ?? false
    this.#measures = options.measures ?? false
    this.#toolNames = options.toolNames
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

  /** Complete events of which none has to be read: most chunks of a stream. */
  override relay(chunk: Buffer): boolean {
    const { facts } = this.recorder
    if (
      this.#isGuarded ||
      this.#collects ||
      this.#toolNames !== undefined ||
      !facts.hasContent ||
      facts.isComplete ||
      this.isOver ||
      !this.#scanner.isAtEventStart
    )
      return false
    const { length } = chunk
    if (length < 2 || chunk[length - 1] !== LF || chunk[length - 2] !== LF) return false
    const text = chunk.toString('latin1')
    if (text.includes('\r') || !this.#isMeasured(text)) return false
    this.recorder.countDeltas(countEvents(text))
    return true
  }

  protected readRest(): readonly ClientEvent[] {
    const last = this.#scanner.end()
    // A partial event would be a parse error at the client.
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
      if (this.facts.isComplete) {
        if (!isDone(raw)) continue
        out.push(new RawEvent(raw))
        this.close()
        break
      }
      const event = this.#observe(raw)
      if (event) out.push(event)
      else if (!this.#isGuarded) out.push(new RawEvent(raw))
    }
    return out
  }

  /** Whether complete events, read as Latin-1, need not be parsed. If so, their text is measured. */
  #isMeasured(events: string): boolean {
    const { significant, texts } = this.#format
    if (significant.test(events)) return false
    if (!this.#measures) return true
    const bytes = texts && measureStrings(events, texts)
    if (bytes !== undefined) this.recorder.addBytes(bytes)
    return bytes !== undefined
  }

  /** Reads an event for the facts; returns the event to send if the stream is guarded or the event was corrected. */
  #observe(raw: Buffer): ClientEvent | undefined {
    const { facts } = this.recorder
    const isRead = this.#isGuarded || this.#collects || this.#toolNames !== undefined || !facts.hasContent || !this.#isMeasured(raw.toString('latin1'))
    if (!isRead) {
      this.recorder.countDelta()
      return undefined
    }
    const { name, data: text } = parseFields(raw)
    if (text === undefined) return undefined
    // Numbers must be parsed losslessly only if the event is printed again.
    const received = this.#isGuarded || this.#toolNames !== undefined ? parseLeniently(text) : parsePlain(text)
    const data = isObject(received) && this.#toolNames !== undefined ? this.#format.rename(received, this.#toolNames) : received
    for (const step of this.#format.reader.read(name, data, text)) this.recorder.record(step)
    if ((facts.isComplete && this.#format.mayEndWithDone !== true) || facts.error) this.close()
    const amended = isObject(data) ? this.#format.amend?.(data) : undefined
    if (!this.#isGuarded && amended === undefined && data === received) return undefined
    if (isObject(data)) return new JsonEvent(name, amended ?? data, this.#format.findTexts)
    return text.trim() === '[DONE]' ? new RawEvent('data: [DONE]\n\n') : undefined
  }
}

/** Number of events in a text that begins with one: each ends with an empty line. */
function countEvents(text: string): number {
  let count = text.startsWith('\n') ? 1 : 0
  for (let at = text.indexOf('\n\n'); at !== -1; at = text.indexOf('\n\n', at + 1)) count++
  return count
}

function isReadable({ raw }: SseEvent): boolean {
  const { data = '' } = parseFields(raw)
  return data.trim() === '[DONE]' || parseLeniently(data) !== undefined
}

const isDone = (raw: Buffer): boolean => parseFields(raw).data?.trim() === '[DONE]'

/** Parses JSON of events that are not printed again; undefined if it is invalid. */
export function parsePlain(text: string): unknown {
  try {
    return parse(text, { numbers: doubles })
  } catch {
    return undefined
  }
}

/** Parses JSON losslessly; undefined if it is invalid. */
export function parseLeniently(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}
