import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { HeaderList } from '../../../http/headers.ts'
import { runSync, type Cooperative } from '../../../runtime/cooperative.ts'
import type { ClientEvent, ClientFormatEntry, FlatMessage, JsonObject, TextDelta } from '../common/types.ts'
import { Edits } from './edits.ts'
import type { Patterns } from './patterns.ts'
import { hasHit, maskTexts } from './search.ts'
import { collectRequestTexts, collectResponseTexts, textOf, type GuardText } from './texts.ts'
import type { GuardPhase, Subject } from './types.ts'

/** A request or a buffered response. `body` includes the changes of guards. */
export class BodySubject implements Subject {
  readonly phase: GuardPhase
  readonly exchange: Exchange
  readonly headers: HeaderList
  readonly #entry: ClientFormatEntry
  #body: JsonObject
  /** The texts of `#body`, once they are collected. */
  #texts: readonly GuardText[] | undefined

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

  *texts(): Cooperative<readonly string[]> {
    return (yield* this.#collect()).map(textOf)
  }

  replaceTexts(texts: readonly string[]): void {
    const changed = new Map<GuardText, string>()
    for (const [nth, text] of (this.#texts ?? []).entries()) if (texts[nth] !== undefined && texts[nth] !== textOf(text)) changed.set(text, texts[nth])
    this.#replace(changed)
  }

  *messages(): Cooperative<readonly FlatMessage[]> {
    const others = (yield* this.#others()).map((text) => ({ role: text.kind === 'json' ? 'tool' : text.role, content: textOf(text) }))
    return [...this.#flatten(), ...others]
  }

  replaceMessages(messages: readonly FlatMessage[]): void {
    const others = runSync(this.#others())
    const count = this.#flatten().length
    const hasOthers = messages.length === count + others.length
    if (this.phase === 'Response' && !hasOthers) throw new RangeError(`${messages.length} choices instead of ${count + others.length}`)
    if (hasOthers) {
      const changed = new Map<GuardText, string>()
      for (const [nth, text] of others.entries()) {
        const { content } = messages[count + nth] ?? { content: '' }
        if (content !== textOf(text)) changed.set(text, content)
      }
      this.#replace(changed)
    }
    const plain = hasOthers ? messages.slice(0, count) : messages
    this.#set(
      this.phase === 'Request'
        ? this.#entry.replaceMessages(this.#body, plain)
        : this.#entry.replaceChoices(
            this.#body,
            plain.map(({ content }) => content),
          ),
    )
  }

  *mask(patterns: Patterns): Cooperative<boolean> {
    const masked = yield* maskTexts(yield* this.#collect(), patterns)
    this.#replace(masked)
    return masked.size > 0
  }

  *hasHit(patterns: Patterns): Cooperative<boolean> {
    return yield* hasHit(yield* this.#collect(), patterns)
  }

  #flatten(): FlatMessage[] {
    return this.phase === 'Request' ? this.#entry.flattenRequest(this.#body) : this.#entry.flattenResponse(this.#body)
  }

  /** The texts that are not in the plain messages. Tool calls of a response are not sent as messages. */
  *#others(): Cooperative<readonly GuardText[]> {
    const texts = yield* this.#collect()
    const isToolCall = ({ kind, parts }: GuardText): boolean => kind === 'json' || parts[0]?.place.key === 'name'
    return texts.filter((text) => !text.isMessage && (this.phase === 'Request' || !isToolCall(text)))
  }

  #replace(texts: ReadonlyMap<GuardText, string>): void {
    if (texts.size === 0) return
    const edits = new Edits()
    for (const [text, replacement] of texts) edits.replace(text, replacement)
    this.#set(edits.apply(this.#body))
  }

  #set(body: JsonObject): void {
    this.#body = body
    this.#texts = undefined
  }

  *#collect(): Cooperative<readonly GuardText[]> {
    const collect = this.phase === 'Request' ? collectRequestTexts : collectResponseTexts
    return (this.#texts ??= yield* collect(this.#body, this.#entry.format))
  }
}

/** A streamed response that was held back until its end. */
export class StreamSubject implements Subject {
  readonly phase = 'Response'
  readonly exchange: Exchange
  readonly headers: HeaderList
  readonly #pieces = new Map<string, TextDelta[]>()
  readonly #repeats = new Map<string, TextDelta[]>()
  readonly #copies = new Map<string, TextDelta[]>()

  constructor(events: readonly ClientEvent[], exchange: Exchange, headers: HeaderList) {
    this.exchange = exchange
    this.headers = headers
    for (const { deltas, others: rest } of events)
      for (const delta of [...deltas, ...rest]) {
        const kept = delta.kind === 'copy' ? this.#copies : delta.isWhole ? this.#repeats : this.#pieces
        const others = kept.get(delta.segment)
        if (others === undefined) kept.set(delta.segment, [delta])
        else others.push(delta)
      }
  }

  /** The kinds of the texts. */
  kinds(): readonly TextDelta['kind'][] {
    return this.#segments().map((segment) => (this.#pieces.get(segment) ?? this.#repeats.get(segment))?.[0]?.kind ?? 'text')
  }

  // oxlint-disable-next-line require-yield -- as BodySubject
  *texts(): Cooperative<readonly string[]> {
    return this.#segments().map((segment) => this.#textOf(segment))
  }

  replaceTexts(texts: readonly string[]): void {
    for (const [at, segment] of this.#segments().entries()) this.#write(segment, texts[at] ?? '')
  }

  // oxlint-disable-next-line require-yield -- as BodySubject
  *messages(): Cooperative<readonly FlatMessage[]> {
    return this.#textSegments().map((segment) => ({ role: 'assistant', content: this.#textOf(segment) }))
  }

  replaceMessages(messages: readonly FlatMessage[]): void {
    const segments = this.#textSegments()
    if (messages.length !== segments.length) throw new RangeError(`${messages.length} choices instead of ${segments.length}`)
    for (const [at, segment] of segments.entries()) this.#write(segment, messages[at]?.content ?? '')
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
    for (const segment of this.#segments()) if (yield* patterns.hasHit(this.#textOf(segment))) return true
    return false
  }

  #segments(): string[] {
    return [...new Set([...this.#pieces.keys(), ...this.#repeats.keys()])]
  }

  /** Tool calls of a response, and their names, are not sent as messages. */
  #textSegments(): string[] {
    return this.#segments().filter((segment) => this.#isText(segment) && !segment.startsWith('name='))
  }

  #isText(segment: string): boolean {
    return (this.#pieces.get(segment) ?? this.#repeats.get(segment))?.[0]?.kind !== 'toolInput'
  }

  #textOf(segment: string): string {
    const pieces = this.#pieces.get(segment)
    return pieces === undefined ? (this.#repeats.get(segment)?.[0]?.text ?? '') : pieces.map(({ text }) => text).join('')
  }

  /** Puts the text into the first event and empties the others; events that repeat the whole text receive all of it. */
  #write(segment: string, text: string): void {
    if (text === this.#textOf(segment)) return
    for (const [at, delta] of (this.#pieces.get(segment) ?? []).entries()) delta.replace(at === 0 ? text : '')
    for (const delta of this.#repeats.get(segment) ?? []) delta.replace(text)
    for (const copy of this.#copies.get(segment) ?? []) copy.replace('')
  }
}
