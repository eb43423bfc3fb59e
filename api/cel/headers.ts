import { badArgument, noSuchKey } from './error.ts'
import { HostMap, REDACTED } from './values.ts'
import type { Stored, Value } from './values.ts'

/** What a header list of the host must offer; names are lower case. */
export interface HeaderSource extends Iterable<readonly [name: string, value: string]> {
  /** First value. */
  get(name: string): string | undefined
  getAll(name: string): readonly string[]
}

/** How values are shown: `plain` is a string, or a list when the header comes several times. */
type Style = 'plain' | 'join' | 'raw' | 'split'

const SECRETS: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization'])

/** `request.headers`: a map whose keys are case-insensitive, with `redacted() join() raw() split() cookie(name)`. */
export class HeaderView extends HostMap {
  readonly #source: HeaderSource
  readonly #style: Style
  readonly #isRedacted: boolean

  constructor(source: HeaderSource, style: Style = 'plain', isRedacted = false) {
    super()
    this.#source = source
    this.#style = style
    this.#isRedacted = isRedacted
  }

  get(key: string): Stored {
    const name = key.toLowerCase()
    const first = this.#source.get(name)
    if (first === undefined) return undefined
    const isHidden = this.#isRedacted && SECRETS.has(name)
    if (this.#style === 'plain' && isHidden) return REDACTED
    const values = isHidden ? [REDACTED] : this.#source.getAll(name)
    switch (this.#style) {
      case 'plain':
        return values.length === 1 ? first : values
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
    for (const [name] of this.#source) names.add(name)
    return names
  }

  override call(name: string, args: readonly Value[]): Stored {
    switch (name) {
      case 'redacted':
        return new HeaderView(this.#source, this.#style, true)
      case 'join':
      case 'raw':
      case 'split':
        return args.length === 0 ? new HeaderView(this.#source, name, this.#isRedacted) : undefined
      case 'cookie':
        return typeof args[0] === 'string' ? this.#findCookie(args[0]) : badArgument
      default:
        return undefined
    }
  }

  /** The first cookie of that name; names are case-sensitive (RFC 6265 §4.1.1). */
  #findCookie(name: string): Value {
    for (const line of this.#source.getAll('cookie')) {
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
