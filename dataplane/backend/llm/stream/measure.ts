const BACKSLASH = 0x5c
const UNICODE = 0x75
/** Length of `\u` and its digits. */
const UNICODE_LENGTH = 6

/**
 * Bytes in UTF-8 of the strings in events that are read as Latin-1; undefined if one of the values is no string, or has no end.
 * @param keys matches a member up to the first character of its value, which is its only group; global
 */
export function measureStrings(events: string, keys: RegExp): number | undefined {
  let bytes = 0
  keys.lastIndex = 0
  for (let found = keys.exec(events); found !== null; found = keys.exec(events)) {
    const start = keys.lastIndex
    const end = found[1] === '"' ? findEnd(events, start) : -1
    if (end === -1) return undefined
    bytes += measureLiteral(events.slice(start, end))
    keys.lastIndex = end + 1
  }
  return bytes
}

/** Index of the quote that ends a string; -1 if there is none. */
function findEnd(text: string, start: number): number {
  let at = text.indexOf('"', start)
  while (at !== -1 && isEscaped(text, start, at)) at = text.indexOf('"', at + 1)
  return at
}

function isEscaped(text: string, start: number, at: number): boolean {
  let from = at
  while (from > start && text.charCodeAt(from - 1) === BACKSLASH) from--
  return (at - from) % 2 === 1
}

function measureLiteral(literal: string): number {
  let bytes = literal.length
  for (let at = literal.indexOf('\\'); at !== -1;) {
    const isUnicode = literal.charCodeAt(at + 1) === UNICODE
    bytes -= isUnicode ? UNICODE_LENGTH - bytesOf(Number.parseInt(literal.slice(at + 2, at + UNICODE_LENGTH), 16)) : 1
    at = literal.indexOf('\\', at + (isUnicode ? UNICODE_LENGTH : 2))
  }
  return bytes
}

/** Bytes of a UTF-16 unit; each half of a surrogate pair has two. */
function bytesOf(unit: number): number {
  if (unit < 0x80) return 1
  return unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 2 : 3
}
