import { isAscii } from 'node:buffer'
import { isJsonObject, JsonLimitError, parseJson as parse, printJsonInSteps, type JsonLimits } from '#api/json/index.ts'
import { runSync, type Cooperative } from '../../../runtime/cooperative.ts'
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

/** As `printJson`, to bytes in steps. The values must be JSON. */
export function* printBytesInSteps(value: unknown): Cooperative<readonly Buffer[]> {
  const bytes: Buffer[] = []
  for (const piece of yield* printJsonInSteps(value)) {
    bytes.push(Buffer.from(piece))
    yield
  }
  return bytes
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
  return members === undefined ? printJson(after) : joinPieces(text, runSync(editMembers(text, members, before, after)))
}

/** As `renderBody`, in steps, for a text whose bytes and members are known. Unchanged parts are views of `bytes`, not copies. */
export function* renderBytesInSteps(
  bytes: Buffer,
  text: string,
  members: readonly Member[],
  before: JsonObject,
  after: JsonObject,
): Cooperative<readonly Buffer[]> {
  const pieces = yield* editMembers(text, members, before, after)
  if (!isAscii(bytes)) return [Buffer.from(joinPieces(text, pieces))]
  return pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : bytes.subarray(piece.start, piece.end)))
}

const joinPieces = (text: string, pieces: readonly Piece[]): string =>
  pieces.map((piece) => (typeof piece === 'string' ? piece : text.slice(piece.start, piece.end))).join('')

/** Members of an object that are edited in about a millisecond. */
const MEMBERS_PER_STEP = 2000

function* printInSteps(value: unknown): Cooperative<string> {
  return (yield* printJsonInSteps(value)).join('')
}

function* editMembers(text: string, members: readonly Member[], before: JsonObject, after: JsonObject): Cooperative<Piece[]> {
  const written = new Set<string>()
  const pieces: Piece[] = ['{']
  const append = (added: string): void => {
    const last = pieces.at(-1)
    if (typeof last === 'string') pieces[pieces.length - 1] = last + added
    else pieces.push(added)
  }
  for (const [index, { start, keyEnd, end }] of members.entries()) {
    if (index % MEMBERS_PER_STEP === MEMBERS_PER_STEP - 1) yield
    const key = JSON.parse(text.slice(start, keyEnd)) as string
    if (!Object.hasOwn(after, key) || after[key] === undefined) continue
    const isSame = after[key] === before[key]
    if (!isSame && written.has(key)) continue
    const last = pieces.at(-1)
    if (isSame && typeof last === 'object' && last.end === start - 1 && text[last.end] === ',') last.end = end
    else {
      if (written.size > 0) append(',')
      if (isSame) pieces.push({ start, end })
      else append(`${JSON.stringify(key)}:${yield* printInSteps(after[key])}`)
    }
    written.add(key)
  }
  for (const key of Object.keys(after)) {
    const value = after[key]
    if (written.has(key) || value === undefined) continue
    append(`${written.size > 0 ? ',' : ''}${JSON.stringify(key)}:${yield* printInSteps(value)}`)
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

/** The top-level members in the valid JSON text of an object, in order; undefined if the text is not an object. */
export function listMembers(text: string): readonly Member[] | undefined {
  return runSync(listMembersInSteps(text))
}

/** As `listMembers`, in steps. Fast for long strings. */
export function* listMembersInSteps(text: string): Cooperative<readonly Member[] | undefined> {
  const members: Member[] = []
  let at = text.indexOf('{') + 1
  if (at === 0) return undefined
  for (;;) {
    const start = text.indexOf('"', at)
    if (start === -1) return members
    const keyEnd = yield* skipString(text, start)
    const end = yield* skipValue(text, text.indexOf(':', keyEnd) + 1)
    if (end === -1) return undefined
    members.push({ start, keyEnd, end })
    at = end
  }
}

/** Escaped quotes in a string, and characters outside of strings, that are read in about a millisecond. */
const QUOTES_PER_STEP = 16_384
const CHARACTERS_PER_STEP = 262_144

/** The index after the closing quote of the string that opens at `from`; -1 if it has many escaped quotes. */
function skipPlainString(text: string, from: number): number {
  let at = from
  for (let quotes = 0; quotes < 64; quotes++) {
    at = text.indexOf('"', at + 1)
    if (at === -1) return text.length
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes++
    if (slashes % 2 === 0) return at + 1
  }
  return -1
}

/** As `skipPlainString`, in steps, for any string. */
function* skipString(text: string, from: number): Cooperative<number> {
  const near = skipPlainString(text, from)
  if (near !== -1) return near
  let at = from
  for (let quotes = 1; ; quotes++) {
    at = text.indexOf('"', at + 1)
    if (at === -1) return text.length
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes++
    if (slashes % 2 === 0) return at + 1
    if (quotes % QUOTES_PER_STEP === 0) yield
  }
}

/** The index after the value that starts at or after `from`, at the `,` or `}` of depth 0 (the member includes trailing space). */
function* skipValue(text: string, from: number): Cooperative<number> {
  let depth = 0
  let steps = 0
  let near = 0
  for (let at = from; at < text.length;) {
    if (++steps % CHARACTERS_PER_STEP === 0) yield
    switch (text.charCodeAt(at)) {
      case 0x22:
        near = skipPlainString(text, at)
        at = near === -1 ? yield* skipString(text, at) : near
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
