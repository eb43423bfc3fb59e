import { isObject, parseJson, printJson } from '../common/json.ts'
import { hasText as isTextMember, isToolInput, NO_TEXTS, SCHEMAS } from '../common/text-members.ts'
import type { ClientEvent, JsonObject, TextDelta } from '../common/types.ts'
import { printEvent } from './sse.ts'

const none: readonly never[] = []

/** Bytes that pass unchanged. */
export class RawEvent implements ClientEvent {
  readonly deltas: readonly TextDelta[] = none
  readonly others: readonly TextDelta[] = none
  readonly closes: readonly string[] = none
  readonly #bytes: Buffer

  constructor(bytes: Buffer | string) {
    this.#bytes = typeof bytes === 'string' ? Buffer.from(bytes) : bytes
  }

  toBytes(): Buffer {
    return this.#bytes
  }
}

/** The text in one event. */
export interface EventTexts {
  readonly deltas: readonly TextDelta[]
  readonly closes: readonly string[]
  /** Parts of the event in which other strings are texts too. */
  readonly roots?: readonly unknown[]
}
/** Finds the text in the data of one event. */
export type FindTexts = (data: JsonObject) => EventTexts

/** An event with JSON data. Replaced texts are written into `data`, which the event owns. */
export class JsonEvent implements ClientEvent {
  readonly name: string | undefined
  readonly data: JsonObject
  readonly #find: FindTexts
  #texts: EventTexts | undefined
  #others: readonly TextDelta[] | undefined

  constructor(name: string | undefined, data: JsonObject, find: FindTexts) {
    this.name = name
    this.data = data
    this.#find = find
  }

  get deltas(): readonly TextDelta[] {
    return (this.#texts ??= this.#find(this.data)).deltas
  }

  get others(): readonly TextDelta[] {
    const { deltas, roots } = (this.#texts ??= this.#find(this.data))
    return (this.#others ??= roots === undefined ? none : findOthers(roots, deltas))
  }

  get closes(): readonly string[] {
    return (this.#texts ??= this.#find(this.data)).closes
  }

  toBytes(): Buffer {
    return Buffer.from(printEvent(this.name, printJson(this.data)))
  }
}

/** The text at `owner[key]`, if it is a non-empty string. */
export function findText(owner: JsonObject | undefined, key: string, kind: TextDelta['kind'], segment: string, isWhole = false): readonly TextDelta[] {
  return hasText(owner, key) ? [new FoundText(owner, key, kind, segment, isWhole)] : none
}

/** As `findText`, without allocating if there is no text: appends to `deltas`. A replacement removes `logprobs` of `parent` too. */
export function addText(deltas: TextDelta[], owner: JsonObject | undefined, key: string, kind: TextDelta['kind'], segment: string, parent?: JsonObject): void {
  if (hasText(owner, key)) deltas.push(new FoundText(owner, key, kind, segment, false, parent))
}

const hasText = (owner: JsonObject | undefined, key: string): owner is JsonObject => owner !== undefined && typeof owner[key] === 'string' && owner[key] !== ''

class FoundText implements TextDelta {
  readonly kind: TextDelta['kind']
  readonly segment: string
  readonly isWhole: boolean
  readonly #owner: Record<string, string>
  readonly #key: string
  readonly #parent: JsonObject | undefined

  constructor(owner: JsonObject, key: string, kind: TextDelta['kind'], segment: string, isWhole: boolean, parent?: JsonObject) {
    this.#parent = parent
    this.kind = kind
    this.segment = segment
    this.isWhole = isWhole
    // The event owns its parsed data, so it can be written to.
    this.#owner = owner as Record<string, string>
    this.#key = key
  }

  /** Adds the place of the text to `places`. */
  mark(places: Map<object, Set<string>>): void {
    const keys = places.get(this.#owner)
    if (keys === undefined) places.set(this.#owner, new Set([this.#key]))
    else keys.add(this.#key)
  }

  get text(): string {
    return this.#owner[this.#key] ?? ''
  }

  replace(text: string): void {
    this.#owner[this.#key] = text
    removeCopies(this.#owner)
    if (this.#parent !== undefined) removeCopies(this.#parent)
  }
}

/** Removes members that repeat a text or refer to its offsets. */
function removeCopies(owner: JsonObject): void {
  const changed = owner as Record<string, unknown>
  for (const key of ['logprobs', 'annotations']) {
    if (Array.isArray(changed[key])) changed[key] = []
    else if (isObject(changed[key])) changed[key] = null
  }
}

/** The texts in `roots` that are not among `deltas`, by the rules for complete responses (llm.md §13.1). Visits without recursion, as events may be nested deeply. */
function findOthers(roots: readonly unknown[], deltas: readonly TextDelta[]): readonly TextDelta[] {
  const found: TextDelta[] = []
  const known = new Map<object, Set<string>>()
  for (const delta of deltas) if (delta instanceof FoundText) delta.mark(known)
  const open: unknown[] = roots.toReversed()
  while (open.length > 0) {
    const owner = open.pop()
    const isList = Array.isArray(owner)
    if (!isList && !isObject(owner)) continue
    const members = owner as unknown as Record<string, unknown>
    for (const key of Object.keys(members)) {
      const value = members[key]
      if (value === '' || known.get(members)?.has(key) === true) continue
      if (typeof value === 'string') {
        if (isList || isTextMember(key, members)) found.push(new OtherText(members, key, !isList && isToolInput(key, members) ? 'toolInput' : 'text'))
      } else if (!isList && isObject(value) && (SCHEMAS.has(key) || isToolInput(key, members))) {
        if (Object.keys(value).length > 0) found.push(new OtherText(members, key, 'toolInput'))
      } else if (isList || !NO_TEXTS.has(key)) open.push(value)
    }
  }
  return found
}

/** A complete text, or an object that is masked as JSON. Equal texts have one segment, so that a guard service gets a text once that several events repeat. */
class OtherText implements TextDelta {
  readonly kind: TextDelta['kind']
  readonly isWhole = true
  readonly #owner: Record<string, unknown>
  readonly #key: string

  constructor(owner: Record<string, unknown>, key: string, kind: TextDelta['kind']) {
    this.#owner = owner
    this.#key = key
    this.kind = kind
  }

  get segment(): string {
    return `${this.#key === 'name' ? 'name' : 'other'}=${this.text}`
  }

  get text(): string {
    const value = this.#owner[this.#key]
    return typeof value === 'string' ? value : printJson(value)
  }

  replace(text: string): void {
    this.#owner[this.#key] = typeof this.#owner[this.#key] === 'string' ? text : parseJson(text)
  }
}

/** The bytes of all events. */
export function renderEvents(events: readonly ClientEvent[]): Buffer {
  const [first] = events
  return first !== undefined && events.length === 1 ? first.toBytes() : Buffer.concat(events.map((event) => event.toBytes()))
}
