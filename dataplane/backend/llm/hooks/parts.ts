import type { LlmPart } from '#api/plugin/index.ts'
import { isObject, parseJson } from '../common/json.ts'
import { Edits } from '../guards/edits.ts'
import { textOf, type GuardText } from '../guards/texts.ts'
import type { JsonObject } from '../common/types.ts'

type Place = GuardText['parts'][number]['place']

const REASONING: ReadonlySet<unknown> = new Set(['thinking', 'reasoning', 'reasoning_content', 'reasoning_details', 'summary'])

/** The keys from the body to a text. */
export function pathOf({ parts: [part] }: GuardText): (string | number)[] {
  const keys: (string | number)[] = []
  for (let at: Place | undefined = part?.place; at !== undefined; at = at.parent) keys.unshift(at.key)
  return keys
}

/** A text as hooks see it. `ref` is its index among the texts. */
export function partOf(text: GuardText, ref: number, body: JsonObject): LlmPart {
  return { ref, type: typeOf(text, body), text: textOf(text) }
}

function typeOf(text: GuardText, body: JsonObject): LlmPart['type'] {
  if (text.kind === 'json') return 'json'
  const path = pathOf(text)
  if (path.at(-1) === 'name') return 'name'
  const [list, nth] = path
  const items = list === 'output' || list === 'input' ? body[list] : undefined
  const item: unknown = Array.isArray(items) ? items[Number(nth)] : undefined
  if (path.some((key) => REASONING.has(key)) || (isObject(item) && item['type'] === 'reasoning')) return 'reasoning'
  return text.role === 'tool' ? 'result' : 'text'
}

/** The object; throws an Error that names it otherwise. */
export function objectIn(value: unknown, name: string): JsonObject {
  if (!isObject(value)) throw new TypeError(`${name} is no object`)
  return value
}

/** The list; throws an Error that names it otherwise. */
export function listIn(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new TypeError(`${name} is no list`)
  return value as unknown[]
}

/** Texts that a hook changed. */
export class TextChanges {
  readonly #edits = new Edits()
  readonly #texts: readonly GuardText[]

  constructor(texts: readonly GuardText[]) {
    this.#texts = texts
  }

  /** Reads the parts that replace those with the given refs. Throws an Error if one is missing, added or not usable. */
  read(parts: readonly unknown[], refs: ReadonlySet<number>, name: string): void {
    const seen = new Set<number>()
    for (const [nth, part] of parts.entries()) {
      const at = `${name}[${nth}]`
      const { ref, text } = objectIn(part, at)
      if (typeof ref !== 'number' || !refs.has(ref)) throw new TypeError(`${at} has no ref of the parts there; parts cannot be added or moved`)
      if (seen.has(ref)) throw new TypeError(`${at} has the ref of another part`)
      if (typeof text !== 'string') throw new TypeError(`${at}.text is no string`)
      seen.add(ref)
      this.#change(ref, text, at)
    }
    if (seen.size < refs.size) throw new TypeError(`${name} lacks ${refs.size - seen.size} parts; parts cannot be removed, set their text to ''`)
  }

  #change(ref: number, replacement: string, at: string): void {
    const text = this.#texts[ref]
    if (text === undefined || replacement === textOf(text)) return
    if (text.kind === 'json') checkJson(text, replacement, at)
    this.#edits.replace(text, replacement)
  }

  apply(body: JsonObject): JsonObject {
    return this.#edits.apply(body)
  }
}

/** An object or a list must remain one: providers reject other types. */
function checkJson(text: GuardText, replacement: string, at: string): void {
  const before = parse(textOf(text))
  const after = parse(replacement)
  if (after === undefined && before !== undefined) throw new TypeError(`${at}.text is no JSON`)
  if (Array.isArray(before) !== Array.isArray(after) || isObject(before) !== isObject(after)) throw new TypeError(`${at}.text is JSON of another type`)
}

function parse(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}
