import { isObject, printJson } from '../common/json.ts'
import type { ClientEvent, JsonObject, TextDelta } from '../common/types.ts'
import { printEvent } from './sse.ts'

const none: readonly never[] = []

/** Bytes that pass unchanged. */
export class RawEvent implements ClientEvent {
  readonly deltas: readonly TextDelta[] = none
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
}
/** Finds the text in the data of one event. */
export type FindTexts = (data: JsonObject) => EventTexts

/** An event with JSON data. Replaced texts are written into `data`, which the event owns. */
export class JsonEvent implements ClientEvent {
  readonly name: string | undefined
  readonly data: JsonObject
  readonly #find: FindTexts
  #texts: EventTexts | undefined

  constructor(name: string | undefined, data: JsonObject, find: FindTexts) {
    this.name = name
    this.data = data
    this.#find = find
  }

  get deltas(): readonly TextDelta[] {
    return (this.#texts ??= this.#find(this.data)).deltas
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

/** The bytes of all events. */
export function renderEvents(events: readonly ClientEvent[]): Buffer {
  const [first] = events
  return first !== undefined && events.length === 1 ? first.toBytes() : Buffer.concat(events.map((event) => event.toBytes()))
}
