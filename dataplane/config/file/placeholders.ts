/**
 * Placeholders of the config file: `${NAME}`, `${NAME:-default}`, `${file:path}`, `${file:path:-default}`, and `$${` for the text `${`.
 *
 * They are masked before the text is parsed, because YAML does not allow `${NAME}` in `{ key: ${NAME} }`, and replaced in the parsed strings, so that no value
 * can change the structure of the file. A mask has the length of its placeholder, so that lines and columns stay as they are.
 */

/** An environment variable or a file, with the text to use instead if it is not set or does not exist. */
type Source = { readonly kind: 'variable' | 'file'; readonly name: string; readonly fallback: string | undefined } | { readonly kind: 'invalid' }

/** A placeholder as it is written in the file. */
export interface Placeholder {
  /** For example `${OPENAI_API_KEY}`. */
  readonly text: string
  /** Position of its first character in the text of the file. */
  readonly offset: number
  readonly source: Source
}

/** A text whose placeholders are masked. */
export interface MaskedText {
  readonly text: string
  /** Splits a string of the parsed document; undefined if it has no placeholder. Pieces of text are returned with `$${` replaced by `${`. */
  split(value: string): readonly (string | Placeholder)[] | undefined
  /** Puts the placeholders back into a text, such as a message of the parser. */
  unmask(text: string): string
  /** The text as it was written, `$${` included. */
  restore(text: string): string
}

const pattern = /\$\$\{|\$\{(?:([A-Za-z_]\w*)(?::-([^}\n]*))?|file:([^}\n]*?)(?::-([^}\n]*))?|[^{}"'\n]*)\}/g

/** Private-use characters. Those that the text does not contain make up the masks. */
const FIRST_MASK = 0xe0_00
const LAST_MASK = 0xf8_ff
/** A mask is a start and at least three digits, as the shortest placeholder is `${A}`. */
const DIGITS = 32
const MAX_PLACEHOLDERS = 10_000

/** Masks the placeholders of a text; undefined if it contains none. Throws an Error if there are too many. */
export function maskPlaceholders(text: string): MaskedText | undefined {
  if (!text.includes('${')) return undefined
  const [start = '', escape = '', ...digits] = unusedCharacters(text, DIGITS + 2)
  const placeholders: Placeholder[] = []
  const maskOf = (index: number, length: number): string => {
    const [high, middle, low] = [Math.floor(index / DIGITS ** 2), Math.floor(index / DIGITS) % DIGITS, index % DIGITS].map((digit) => digits[digit] ?? '')
    return `${start}${high}${middle}${low}`.padEnd(length, digits[0])
  }
  const masked = text.replace(pattern, (written: string, name?: string, fallback?: string, file?: string, fileFallback?: string, offset = 0) => {
    if (written === '$${') return escape.repeat(written.length)
    placeholders.push({ text: written, offset, source: sourceOf(name, fallback, file, fileFallback) })
    if (placeholders.length > MAX_PLACEHOLDERS) throw new Error(`has more than ${MAX_PLACEHOLDERS} placeholders`)
    return maskOf(placeholders.length - 1, written.length)
  })
  const indexOf = (mask: string): number => Array.from(mask.slice(1, 4)).reduce((sum, digit) => sum * DIGITS + digits.indexOf(digit), 0)
  const parts = new RegExp(`(${start}[${digits.join('')}]*|${escape.repeat(3)})`)
  const split: MaskedText['split'] = (value) => {
    if (!value.includes(start) && !value.includes(escape)) return undefined
    return value.split(parts).flatMap((part): (string | Placeholder)[] => {
      if (part === '') return []
      if (part.startsWith(escape)) return ['${']
      return part.startsWith(start) ? placeholders.slice(indexOf(part), indexOf(part) + 1) : [part]
    })
  }
  return {
    text: masked,
    split,
    unmask: (value) =>
      split(value)
        ?.map((part) => (typeof part === 'string' ? part : part.text))
        .join('') ?? value,
    restore: (value) =>
      value
        .split(parts)
        .map((part) => (part.startsWith(escape) ? '$${' : part.startsWith(start) ? (placeholders[indexOf(part)]?.text ?? '') : part))
        .join(''),
  }
}

function sourceOf(name: string | undefined, fallback: string | undefined, file: string | undefined, fileFallback: string | undefined): Source {
  if (name !== undefined) return { kind: 'variable', name, fallback }
  const path = file?.trim() ?? ''
  return path === '' ? { kind: 'invalid' } : { kind: 'file', name: path, fallback: fileFallback }
}

function unusedCharacters(text: string, count: number): string[] {
  const used = new Set(text.match(/[\uE000-\uF8FF]/g))
  const unused: string[] = []
  for (let code = FIRST_MASK; code <= LAST_MASK && unused.length < count; code++) {
    const character = String.fromCharCode(code)
    if (!used.has(character)) unused.push(character)
  }
  if (unused.length < count) throw new Error('contains every private-use character of Unicode; placeholders need some of them')
  return unused
}
