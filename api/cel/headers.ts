import { badArgument, noSuchKey, repeatedCookie } from './error.ts'
import { REDACTED } from '../names.ts'
import { HostMap } from './values.ts'
import type { Stored, Value } from './values.ts'

/** A header list of the host: name, value, name, value, in the order received, names in lower case. */
export interface HeaderSource {
  readonly raw: readonly string[]
}

/** Form of the values: `plain` is a string, or a list if the header occurs several times. */
type Style = 'plain' | 'join' | 'raw' | 'split'

/** The values of a header that occurs several times: a list that does not compare with a string. */
export class RepeatedHeader extends Array<string> {
  static override get [Symbol.species](): ArrayConstructor {
    return Array
  }
}

const identity = (value: string): string => value

const SECRETS: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization'])

/**
 * `request.headers`: a map with case-insensitive keys and the methods `redacted()`, `join()`, `raw()`, `split()` and
 * `cookie(name)`. A live view: it reads the list at each access.
 */
export class HeaderView extends HostMap {
  readonly #source: HeaderSource
  readonly #style: Style
  readonly #isRedacted: boolean
  readonly #decode: (value: string) => string

  /** `decode` converts a value of the list to the text that expressions see; the default returns it unchanged. */
  constructor(source: HeaderSource, decode: (value: string) => string = identity, style: Style = 'plain', isRedacted = false) {
    super()
    this.#source = source
    this.#style = style
    this.#isRedacted = isRedacted
    this.#decode = decode
  }

  get(key: string): Stored {
    const found = findHeader(this.#source.raw, key, 0)
    // Rules usually spell names in lower case: try the name as it is first.
    if (found < 0) return hasUpperCase(key) ? this.#read(key.toLowerCase()) : undefined
    return this.#read(key, found)
  }

  #read(name: string, first = findHeader(this.#source.raw, name, 0)): Stored {
    if (first < 0) return undefined
    const { raw } = this.#source
    if (this.#style === 'plain' && !this.#isRedacted && findHeader(raw, name, first + 2) < 0) return this.#decode(raw[first + 1] ?? '')
    const isHidden = this.#isRedacted && SECRETS.has(name)
    const values = isHidden ? [REDACTED] : this.#getAll(name)
    switch (this.#style) {
      case 'plain':
        return values.length === 1 ? values[0] : RepeatedHeader.from(values)
      case 'join':
        return values.join(', ')
      case 'raw':
        return values
      case 'split':
        return values.flatMap((value) => value.split(',')).map((part) => part.trim())
    }
  }

  keys(): Iterable<string> {
    const names = new Set<string>()
    const { raw } = this.#source
    for (let i = 0; i < raw.length; i += 2) names.add(raw[i] ?? '')
    return names
  }

  #getAll(name: string): string[] {
    const { raw } = this.#source
    const values: string[] = []
    for (let at = findHeader(raw, name, 0); at >= 0; at = findHeader(raw, name, at + 2)) values.push(this.#decode(raw[at + 1] ?? ''))
    return values
  }

  override call(name: string, args: readonly Value[]): Stored {
    switch (name) {
      case 'redacted':
        return new HeaderView(this.#source, this.#decode, this.#style, true)
      case 'join':
      case 'raw':
      case 'split':
        return args.length === 0 ? new HeaderView(this.#source, this.#decode, name, this.#isRedacted) : undefined
      case 'cookie':
        return typeof args[0] === 'string' ? this.#findCookie(args[0]) : badArgument
      default:
        return undefined
    }
  }

  /**
   * Value of the cookie of that name, without quotes. Names are case-sensitive (RFC 6265 §4.1.1). Servers differ in which of two cookies counts, so two
   * values are an error.
   */
  #findCookie(name: string): Value {
    let found: string | undefined
    for (const line of this.#getAll('cookie')) {
      for (const pair of line.split(';')) {
        const equals = pair.indexOf('=')
        if (equals < 0 || pair.slice(0, equals).trim() !== name) continue
        const text = pair.slice(equals + 1).trim()
        const value = text.length > 1 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text
        if (found !== undefined && found !== value) return repeatedCookie
        found = value
      }
    }
    return found ?? noSuchKey
  }
}

/** Index of the next field of that name at or after `from`; -1 if there is none. */
function findHeader(raw: readonly string[], name: string, from: number): number {
  for (let i = from; i < raw.length; i += 2) if (raw[i] === name) return i
  return -1
}

/** Called at every lookup: `toLowerCase` costs several times as much, even if nothing changes. */
function hasUpperCase(name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i)
    if ((code >= 65 && code <= 90) || code > 127) return true
  }
  return false
}
