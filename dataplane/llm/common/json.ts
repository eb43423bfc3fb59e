import { isAscii } from 'node:buffer'
import { isJsonObject, JsonLimitError, parseJson as parse, type JsonLimits } from '#api/json/index.ts'
import { FormatError, type JsonObject } from './types.ts'

export { isRawNumber } from '#api/json/index.ts'

/**
 * Parses JSON within limits, by default those of `defaultJsonLimits`. Numbers that a double cannot represent become raw numbers, so that
 * `printJson` writes them unchanged. Throws a FormatError (`failed to parse request: ...`).
 */
export function parseJson(text: string, limits?: JsonLimits): unknown {
  try {
    return parse(text, limits === undefined ? {} : { limits })
  } catch (error) {
    throw invalidJson(error)
  }
}

/** The FormatError of JSON that cannot be parsed. Other errors are returned as they are. */
export function invalidJson(error: unknown): unknown {
  return error instanceof SyntaxError || error instanceof JsonLimitError ? new FormatError('invalid', `failed to parse request: ${error.message}`) : error
}

/** Whether a value from `parseJson` is a JSON object. */
export const isObject: (value: unknown) => value is JsonObject = isJsonObject

/** Prints JSON, raw numbers as in the source. Throws a FormatError if the value is nested too deeply. */
export function printJson(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    throw new FormatError('invalid', 'failed to parse request: nested too deeply')
  }
}

/** The position of a top-level member in the text of an object: from the start of the key to the end of the value (exclusive). */
export interface Member {
  readonly start: number
  readonly keyEnd: number
  readonly end: number
}

/** New text, or the range [start, end) of the old text. */
type Piece = string | { readonly start: number; end: number }

/**
 * Prints an edited body. Unchanged top-level members keep their bytes, changed ones are replaced in place and new ones are added at
 * the end. All duplicates of a changed member are removed, so that the upstream cannot read the old value.
 */
export function renderBody(text: string, before: JsonObject, after: JsonObject): string {
  if (before === after) return text
  const members = listMembers(text)
  return members === undefined ? printJson(after) : joinPieces(text, editMembers(text, members, before, after))
}

/** As `renderBody`, for a text whose bytes and members are known. Unchanged parts are views of `bytes`, not copies. */
export function renderBytes(bytes: Buffer, text: string, members: readonly Member[], before: JsonObject, after: JsonObject): readonly Buffer[] {
  const pieces = editMembers(text, members, before, after)
  if (!isAscii(bytes)) return [Buffer.from(joinPieces(text, pieces))]
  return pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : bytes.subarray(piece.start, piece.end)))
}

const joinPieces = (text: string, pieces: readonly Piece[]): string =>
  pieces.map((piece) => (typeof piece === 'string' ? piece : text.slice(piece.start, piece.end))).join('')

function editMembers(text: string, members: readonly Member[], before: JsonObject, after: JsonObject): Piece[] {
  const written = new Set<string>()
  const pieces: Piece[] = ['{']
  const append = (added: string): void => {
    const last = pieces.at(-1)
    if (typeof last === 'string') pieces[pieces.length - 1] = last + added
    else pieces.push(added)
  }
  for (const { start, keyEnd, end } of members) {
    const key = JSON.parse(text.slice(start, keyEnd)) as string
    if (!Object.hasOwn(after, key) || after[key] === undefined) continue
    const isSame = after[key] === before[key]
    if (!isSame && written.has(key)) continue
    const last = pieces.at(-1)
    if (isSame && typeof last === 'object' && last.end === start - 1 && text[last.end] === ',') last.end = end
    else {
      if (written.size > 0) append(',')
      if (isSame) pieces.push({ start, end })
      else append(`${JSON.stringify(key)}:${printJson(after[key])}`)
    }
    written.add(key)
  }
  for (const key of Object.keys(after)) {
    const value = after[key]
    if (written.has(key) || value === undefined) continue
    append(`${written.size > 0 ? ',' : ''}${JSON.stringify(key)}:${printJson(value)}`)
    written.add(key)
  }
  append('}')
  return pieces
}

/**
 * Whether an object has a duplicate top-level key. Parsers disagree on which one counts, so such bodies are rejected. `parsed` is the
 * object, in which each key occurs once.
 */
export function hasDuplicateKeys(members: readonly Member[], parsed: JsonObject): boolean {
  return members.length > Object.keys(parsed).length
}

/** The top-level members in the valid JSON text of an object, in order; undefined if the text is not an object. Fast for long strings. */
export function listMembers(text: string): readonly Member[] | undefined {
  const members: Member[] = []
  let at = text.indexOf('{') + 1
  if (at === 0) return undefined
  for (;;) {
    const start = text.indexOf('"', at)
    if (start === -1) return members
    const keyEnd = skipString(text, start)
    const end = skipValue(text, text.indexOf(':', keyEnd) + 1)
    if (end === -1) return undefined
    members.push({ start, keyEnd, end })
    at = end
  }
}

/** The index after the closing quote of the string that opens at `from`. */
function skipString(text: string, from: number): number {
  let at = from
  for (;;) {
    at = text.indexOf('"', at + 1)
    if (at === -1) return text.length
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes++
    if (slashes % 2 === 0) return at + 1
  }
}

/** The index after the value that starts at or after `from`, at the `,` or `}` of depth 0 (the member includes trailing space). */
function skipValue(text: string, from: number): number {
  let depth = 0
  for (let at = from; at < text.length;) {
    switch (text.charCodeAt(at)) {
      case 0x22:
        at = skipString(text, at)
        continue
      case 0x7b:
      case 0x5b:
        depth++
        break
      case 0x2c:
        if (depth === 0) return at
        break
      case 0x7d:
      case 0x5d:
        if (depth === 0) return at
        depth--
        break
      default:
    }
    at++
  }
  return -1
}
