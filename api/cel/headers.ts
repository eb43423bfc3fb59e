import { badArgument, noSuchKey } from './error.ts'
import { REDACTED } from '../names.ts'
import { HostMap } from './values.ts'
import type { Stored, Value } from './values.ts'

/** A header list of the host: name, value, name, value, in the order received, names in lower case. */
export interface HeaderSource {
  readonly raw: readonly string[]
}

/** How values are shown: `plain` is a string, or a list when the header comes several times. */
type Style = 'plain' | 'join' | 'raw' | 'split'

const asIs = (value: string): string => value

const SECRETS: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization'])

/** `request.headers`: a map whose keys are case-insensitive, with `redacted() join() raw() split() cookie(name)`. Shows the list as it is when it looks. */
export class HeaderView extends HostMap {
  readonly #source: HeaderSource
  readonly #style: Style
  readonly #isRedacted: boolean
  readonly #decode: (value: string) => string

  /** `decode`: what is shown of a value in the list; by default the value. */
  constructor(source: HeaderSource, decode: (value: string) => string = asIs, style: Style = 'plain', isRedacted = false) {
    super()
    this.#source = source
    this.#style = style
    this.#isRedacted = isRedacted
    this.#decode = decode
  }

  get(key: string): Stored {
    const found = findHeader(this.#source.raw, key, 0)
    // Most rules write names in lower case.
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
        return values.length === 1 ? values[0] : values
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

  /** The first cookie of that name; names are case-sensitive (RFC 6265 §4.1.1). */
  #findCookie(name: string): Value {
    for (const line of this.#getAll('cookie')) {
      for (const pair of line.split(';')) {
        const equals = pair.indexOf('=')
        if (equals < 0 || pair.slice(0, equals).trim() !== name) continue
        const value = pair.slice(equals + 1).trim()
        return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value
      }
    }
    return noSuchKey
  }
}

/** Where the next field of that name is, -1 when there is none. */
function findHeader(raw: readonly string[], name: string, from: number): number {
  for (let i = from; i < raw.length; i += 2) if (raw[i] === name) return i
  return -1
}

/** Asked at every lookup; `toLowerCase` costs several times as much, also when there is nothing to do. */
function hasUpperCase(name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i)
    if ((code >= 65 && code <= 90) || code > 127) return true
  }
  return false
}
