import { printJson } from '../formats/json.ts'
import type { ClientEvent, JsonObject, TextDelta } from '../formats/types.ts'
import { printEvent } from './sse.ts'

const none: readonly never[] = []

/** Bytes that pass as they are. */
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

/** Where one format has text in its events. */
export interface EventTexts {
  readonly deltas: readonly TextDelta[]
  readonly closes: readonly string[]
}
export type FindTexts = (data: JsonObject) => EventTexts

/** An event with JSON data that is its own: replaced texts are written into it. */
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

/** A text in an event: `owner[key]`, if it is a string with something in it. */
export function findText(owner: JsonObject | undefined, key: string, kind: TextDelta['kind'], segment: string, isWhole = false): TextDelta[] {
  if (owner === undefined || typeof owner[key] !== 'string' || owner[key] === '') return []
  // Events are parsed for this stream alone, so writing into them is seen by nobody else.
  const target = owner as Record<string, string>
  return [
    {
      kind,
      segment,
      isWhole,
      get text() {
        return target[key] ?? ''
      },
      replace(text) {
        target[key] = text
      },
    },
  ]
}

/** All bytes of some events. */
export function renderEvents(events: readonly ClientEvent[]): Buffer {
  const [first] = events
  return first !== undefined && events.length === 1 ? first.toBytes() : Buffer.concat(events.map((event) => event.toBytes()))
}
