import type { Cooperative } from '../../runtime/cooperative.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import type { HeaderList } from '../../http/headers.ts'
import { replaceTexts } from '../common/segments.ts'
import type { ClientEvent, ClientFormatEntry, FlatMessage, JsonObject, TextDelta, TextSegment } from '../common/types.ts'
import type { Patterns } from './patterns.ts'
import type { GuardPhase, Subject } from './types.ts'

/** A request or a buffered response. `body` includes the changes of guards. */
export class BodySubject implements Subject {
  readonly phase: GuardPhase
  readonly exchange: Exchange
  readonly headers: HeaderList
  readonly #entry: ClientFormatEntry
  #body: JsonObject

  constructor(phase: GuardPhase, body: JsonObject, entry: ClientFormatEntry, exchange: Exchange, headers: HeaderList) {
    this.phase = phase
    this.#body = body
    this.#entry = entry
    this.exchange = exchange
    this.headers = headers
  }

  get body(): JsonObject {
    return this.#body
  }

  texts(): string[] {
    return this.#inspected().map(({ text }) => text)
  }

  replaceTexts(texts: readonly string[]): void {
    this.#replace(this.#inspected(), texts)
  }

  messages(): FlatMessage[] {
    return this.phase === 'Request' ? this.#entry.flattenRequest(this.#body) : this.#entry.flattenResponse(this.#body)
  }

  replaceMessages(messages: readonly FlatMessage[]): void {
    if (this.phase === 'Request') this.#body = this.#entry.replaceMessages(this.#body, messages)
    else {
      const expected = this.messages().length
      if (messages.length !== expected) throw new RangeError(`${messages.length} choices instead of ${expected}`)
      this.#body = this.#entry.replaceChoices(
        this.#body,
        messages.map(({ content }) => content),
      )
    }
  }

  *mask(patterns: Patterns): Cooperative<boolean> {
    const segments = this.#searched()
    const texts: string[] = []
    for (const { text, isJson } of segments) texts.push(isJson ? yield* patterns.maskJson(text) : yield* patterns.mask(text))
    return this.#replace(segments, texts)
  }

  *hasHit(patterns: Patterns): Cooperative<boolean> {
    for (const { text, isJson } of this.#searched()) if (isJson ? (yield* patterns.maskJson(text)) !== text : yield* patterns.hasHit(text)) return true
    return false
  }

  #replace(segments: readonly TextSegment[], texts: readonly string[]): boolean {
    const changed = new Map<TextSegment, string>()
    for (const [at, segment] of segments.entries()) if (texts[at] !== undefined && texts[at] !== segment.text) changed.set(segment, texts[at])
    this.#body = replaceTexts(this.#body, changed)
    return changed.size > 0
  }

  /** The segments that guard services check: prompts and responses without tools (llm.md §13.1). */
  #inspected(): TextSegment[] {
    return this.#segments().filter(({ scope }) => scope === 'systemPrompt' || scope === 'messages')
  }

  /** The segments that patterns search: in responses also tool input, so that masked text does not leak through a tool call. */
  #searched(): TextSegment[] {
    return this.phase === 'Request' ? this.#inspected() : this.#segments().filter(({ scope }) => scope !== 'toolOutput')
  }

  #segments(): TextSegment[] {
    return this.phase === 'Request' ? this.#entry.requestSegments(this.#body) : this.#entry.responseSegments(this.#body)
  }
}

/** A streamed response that was held back until its end. */
export class StreamSubject implements Subject {
  readonly phase = 'Response'
  readonly exchange: Exchange
  readonly headers: HeaderList
  readonly #pieces = new Map<string, TextDelta[]>()
  readonly #repeats = new Map<string, TextDelta[]>()

  constructor(events: readonly ClientEvent[], exchange: Exchange, headers: HeaderList) {
    this.exchange = exchange
    this.headers = headers
    for (const { deltas } of events)
      for (const delta of deltas) {
        if (delta.kind === 'reasoning') continue
        const kept = delta.isWhole ? this.#repeats : this.#pieces
        kept.set(delta.segment, [...(kept.get(delta.segment) ?? []), delta])
      }
  }

  texts(): string[] {
    return this.#textSegments().map((segment) => this.#textOf(segment))
  }

  replaceTexts(texts: readonly string[]): void {
    for (const [at, segment] of this.#textSegments().entries()) this.#write(segment, texts[at] ?? '')
  }

  messages(): FlatMessage[] {
    return this.texts().map((content) => ({ role: 'assistant', content }))
  }

  replaceMessages(messages: readonly FlatMessage[]): void {
    const expected = this.#textSegments().length
    if (messages.length !== expected) throw new RangeError(`${messages.length} choices instead of ${expected}`)
    this.replaceTexts(messages.map(({ content }) => content))
  }

  *mask(patterns: Patterns): Cooperative<boolean> {
    let isMasked = false
    for (const segment of this.#segments()) {
      const text = this.#textOf(segment)
      const masked = this.#isText(segment) ? yield* patterns.mask(text) : yield* patterns.maskJson(text)
      if (masked === text) continue
      isMasked = true
      this.#write(segment, masked)
    }
    return isMasked
  }

  *hasHit(patterns: Patterns): Cooperative<boolean> {
    for (const text of this.texts()) if (yield* patterns.hasHit(text)) return true
    return false
  }

  #segments(): string[] {
    return [...new Set([...this.#pieces.keys(), ...this.#repeats.keys()])]
  }

  #textSegments(): string[] {
    return this.#segments().filter((segment) => this.#isText(segment))
  }

  #isText(segment: string): boolean {
    return (this.#pieces.get(segment) ?? this.#repeats.get(segment))?.[0]?.kind === 'text'
  }

  #textOf(segment: string): string {
    const pieces = this.#pieces.get(segment)
    return pieces === undefined ? (this.#repeats.get(segment)?.[0]?.text ?? '') : pieces.map(({ text }) => text).join('')
  }

  /** Puts the text into the first event and empties the others; events that repeat the whole text receive all of it. */
  #write(segment: string, text: string): void {
    for (const [at, delta] of (this.#pieces.get(segment) ?? []).entries()) delta.replace(at === 0 ? text : '')
    for (const delta of this.#repeats.get(segment) ?? []) delta.replace(text)
  }
}
