import { SyntaxProblem } from './diagnostic.ts'
import { readQuoted } from './quoted.ts'
import { Uint, isInt64, isUint64 } from './values.ts'

/** A token, with its range in the source. */
export interface Token {
  readonly kind: 'literal' | 'ident' | 'quotedIdent' | 'operator' | 'end'
  /** The operator, the identifier, the back-quoted name or the number as written; empty for strings. */
  readonly text: string
  readonly value?: string | bigint | number | Uint | Uint8Array
  readonly start: number
  readonly end: number
}

const WORD = /[_a-zA-Z][_a-zA-Z0-9]*/y
const NUMBER = /0[xX][0-9a-fA-F]+[uU]?|(?:[0-9]+\.[0-9]+|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?[uU]?/y
const BLANK = /(?:[ \t\n\r\f]|\/\/[^\n]*)+/y
const BACKQUOTED = /`([a-zA-Z0-9_.\-/ ]+)`/y
const OPERATOR = /&&|\|\||[<>=!]=|[-+*/%<>!?:.,()[\]{}]/y

/** Splits an expression into tokens; the last one is of kind `end`. Throws SyntaxProblem. */
export function tokenize(source: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  const read = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    return pattern.exec(source)
  }
  for (;;) {
    at += read(BLANK)?.[0].length ?? 0
    if (at >= source.length) break
    const token = readToken(source, at, read)
    tokens.push(token)
    at = token.end
  }
  tokens.push({ kind: 'end', text: '', start: source.length, end: source.length })
  return tokens
}

function readToken(source: string, start: number, read: (pattern: RegExp) => RegExpExecArray | null): Token {
  const quoted = readQuoted(source, start)
  if (quoted) return { kind: 'literal', text: '', value: quoted.value, start, end: quoted.end }
  const number = read(NUMBER)
  if (number) return { kind: 'literal', text: number[0], value: toNumber(number[0], start), start, end: start + number[0].length }
  const word = read(WORD)
  if (word) return { kind: 'ident', text: word[0], start, end: start + word[0].length }
  const backquoted = read(BACKQUOTED)
  if (backquoted) return { kind: 'quotedIdent', text: backquoted[1] ?? '', start, end: start + backquoted[0].length }
  const operator = read(OPERATOR)
  if (operator) return { kind: 'operator', text: operator[0], start, end: start + operator[0].length }
  throw new SyntaxProblem(`unexpected character ${JSON.stringify(String.fromCodePoint(source.codePointAt(start) ?? 0))}`, start)
}

/** Accepts 2^63, which is legal only after a minus sign; the parser checks the sign. */
function toNumber(text: string, start: number): bigint | number | Uint {
  const isUnsigned = /[uU]$/.test(text)
  const digits = isUnsigned ? text.slice(0, -1) : text
  const isHex = /^0[xX]/.test(digits)
  if (!isHex && /[.eE]/.test(digits)) {
    const double = Number(digits)
    if (isUnsigned) throw new SyntaxProblem(`${text} is not an unsigned integer`, start)
    if (!Number.isFinite(double)) throw new SyntaxProblem(`${text} is beyond the range of doubles`, start)
    return double
  }
  const int = BigInt(digits)
  if (isUnsigned ? !isUint64(int) : !isInt64(-int)) throw new SyntaxProblem(`${text} does not fit into 64 bits`, start)
  return isUnsigned ? new Uint(int) : int
}
