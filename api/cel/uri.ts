import { chargeNew } from './arithmetic.ts'
import { badArgument, noSuchKey } from './error.ts'
import { HostText } from './values.ts'
import type { Stored, Value } from './values.ts'

/** `request.uri` and `request.pathAndQuery`: a string with `query(name)`, `addQuery(name, value)` and `setQuery(name, value)`. */
export class UriText extends HostText {
  readonly text: string

  constructor(text: string) {
    super()
    this.text = text
  }

  call(method: string, [name, value]: readonly Value[]): Stored {
    if (typeof name !== 'string' || (method !== 'query' && typeof value !== 'string')) return badArgument
    chargeNew(this.text.length + name.length)
    switch (method) {
      case 'query':
        return this.#find(name)
      case 'addQuery':
        return this.#replace([...this.#pairs(), encodePair(name, String(value))])
      case 'setQuery':
        return this.#replace([...this.#pairs().filter((pair) => decodeName(pair) !== name), encodePair(name, String(value))])
      default:
        return undefined
    }
  }

  /** The undecoded pairs of the query: a pair that is not changed stays the same, byte for byte. */
  #pairs(): string[] {
    const mark = this.text.indexOf('?')
    return mark < 0
      ? []
      : this.text
          .slice(mark + 1)
          .split('&')
          .filter((pair) => pair !== '')
  }

  #replace(pairs: readonly string[]): UriText {
    const [path = ''] = this.text.split('?', 1)
    return new UriText(pairs.length === 0 ? path : `${path}?${pairs.join('&')}`)
  }

  #find(name: string): Value {
    const values = this.#pairs()
      .filter((pair) => decodeName(pair) === name)
      .map((pair) => decode(pair.slice(decodeEnd(pair))))
    return values.length === 0 ? noSuchKey : values
  }
}

function decodeEnd(pair: string): number {
  const equals = pair.indexOf('=')
  return equals < 0 ? pair.length : equals + 1
}

function decodeName(pair: string): string {
  const [name = ''] = pair.split('=', 1)
  return decode(name)
}

/** Malformed percent-escapes stay as they are, as in browsers. */
function decode(text: string): string {
  const spaced = text.replaceAll('+', ' ')
  try {
    return decodeURIComponent(spaced)
  } catch {
    return spaced
  }
}

function encodePair(name: string, value: string): string {
  return `${encodeURIComponent(name.toWellFormed())}=${encodeURIComponent(value.toWellFormed())}`
}
