import { SyntaxProblem } from './diagnostic.ts'

const SIMPLE: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '?': '?',
  '"': '"',
  "'": "'",
  '`': '`',
}
const OPENING = /([bB]?)([rR]?)("""|'''|"|')/y
const HEX_DIGITS: Readonly<Record<string, number>> = { x: 2, X: 2, u: 4, U: 8 }

/** Reads a string or bytes literal at `start`; undefined if there is none. Throws SyntaxProblem. */
export function readQuoted(source: string, start: number): { value: string | Uint8Array; end: number } | undefined {
  OPENING.lastIndex = start
  const opening = OPENING.exec(source)
  if (opening === null) return undefined
  const [prefix, isBytes, isRaw, quote = ''] = opening
  const from = start + prefix.length
  const end = findEnd(source, from, quote, start)
  const body = source.slice(from, end)
  const sink = isBytes ? new ByteSink() : new TextSink()
  if (isRaw || !body.includes('\\')) sink.addText(body)
  else unescape(body, from, sink)
  return { value: sink.finish(), end: end + quote.length }
}

function findEnd(source: string, from: number, quote: string, start: number): number {
  for (let at = from; at < source.length; at++) {
    if (source.startsWith(quote, at)) return at
    const char = source[at]
    // A backslash keeps the quote after it from ending the literal, in raw literals too.
    if (char === '\\') at++
    else if (quote.length === 1 && (char === '\n' || char === '\r')) break
  }
  throw new SyntaxProblem('the string is not closed', start)
}

function unescape(body: string, from: number, sink: TextSink | ByteSink): void {
  let at = 0
  while (at < body.length) {
    const slash = body.indexOf('\\', at)
    if (slash < 0) break
    sink.addText(body.slice(at, slash))
    at = readEscape(body, slash, from, sink)
  }
  sink.addText(body.slice(at))
}

/** Adds the character of the escape sequence at `slash`; returns the offset of the text after it. */
function readEscape(body: string, slash: number, from: number, sink: TextSink | ByteSink): number {
  const char = body[slash + 1] ?? ''
  const simple = SIMPLE[char]
  if (simple !== undefined) {
    sink.addText(simple)
    return slash + 2
  }
  const octal = /^[0-3][0-7]{2}/.exec(body.slice(slash + 1, slash + 4))
  if (octal) {
    sink.addCode(Number.parseInt(octal[0], 8))
    return slash + 4
  }
  const length = HEX_DIGITS[char]
  const digits = length === undefined ? '' : body.slice(slash + 2, slash + 2 + length)
  const code = Number.parseInt(digits, 16)
  if (length === undefined || !/^[0-9a-fA-F]+$/.test(digits) || digits.length !== length || (length > 2 && !sink.isText) || !isScalar(code)) {
    throw new SyntaxProblem('unknown escape sequence', from + slash)
  }
  sink.addCode(code)
  return slash + 2 + length
}

/** Whether the number is a Unicode scalar value: a code point other than a surrogate. */
function isScalar(code: number): boolean {
  return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
}

class TextSink {
  readonly isText = true
  #text = ''

  addText(text: string): void {
    this.#text += text
  }

  addCode(code: number): void {
    this.#text += String.fromCodePoint(code)
  }

  finish(): string {
    return this.#text
  }
}

/** Collects a bytes literal: numeric escapes are bytes, everything else is UTF-8. */
class ByteSink {
  readonly isText = false
  readonly #bytes: number[] = []

  addText(text: string): void {
    for (const byte of new TextEncoder().encode(text)) this.#bytes.push(byte)
  }

  addCode(code: number): void {
    this.#bytes.push(code)
  }

  finish(): Uint8Array {
    return Uint8Array.from(this.#bytes)
  }
}
