/** A setting that an import leaves out, or changes. */
export interface Loss {
  /** `model_list[0].litellm_params.rpm`. */
  readonly path: string
  readonly reason: string
}

/** A config in our form, and the settings of the source that it does not have. */
export interface Imported {
  readonly config: Readonly<Record<string, unknown>>
  readonly losses: readonly Loss[]
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * An object of a config to import. `finish` reports each field that nothing took, so that no setting is lost silently. A lost field closes what the object
 * serves, because it may have protected that, also if it is a field of a later version of the source; `withHarmless` names those that did not.
 */
export class ImportSource {
  readonly path: string
  readonly #fields: Readonly<Record<string, unknown>>
  readonly #losses: Loss[]
  readonly #parent: ImportSource | undefined
  readonly #taken = new Set<string>()
  readonly #inner = new Map<string, ImportSource>()
  readonly #harmless = new Set<string>()
  #close: (() => void) | undefined
  #isRejected = false

  constructor(value: unknown, path: string, losses: Loss[], parent?: ImportSource) {
    this.#fields = isObject(value) ? value : {}
    this.path = path
    this.#losses = losses
    this.#parent = parent
  }

  has(name: string): boolean {
    const value = this.#peek(name)
    return value !== undefined && value !== null
  }

  get names(): readonly string[] {
    return Object.keys(this.#fields)
  }

  take(name: string): unknown {
    this.#taken.add(name)
    return this.#peek(name) ?? undefined
  }

  /** A text, or a number or boolean as text. */
  text(name: string): string | undefined {
    const value = this.#peek(name)
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return undefined
    this.#taken.add(name)
    return String(value)
  }

  number(name: string): number | undefined {
    const field = this.#peek(name)
    const value = typeof field === 'string' || typeof field === 'number' ? Number(field === '' ? NaN : field) : NaN
    if (!Number.isFinite(value)) return undefined
    this.#taken.add(name)
    return value
  }

  flag(name: string): boolean | undefined {
    const value = this.#peek(name)
    if (typeof value !== 'boolean') return undefined
    this.#taken.add(name)
    return value
  }

  object(name: string): ImportSource | undefined {
    const value = this.#peek(name)
    if (!isObject(value)) return undefined
    this.#taken.add(name)
    return this.#open(value, name)
  }

  /** Objects of a list. Anything else is not taken, and so reported. */
  list(name: string): ImportSource[] {
    const value = this.#peek(name)
    if (!Array.isArray(value) || !value.every(isObject)) return []
    this.#taken.add(name)
    return value.map((item: unknown, index) => this.#open(item, `${name}[${index}]`))
  }

  texts(name: string): string[] | undefined {
    const value = this.#peek(name)
    if (!Array.isArray(value) || value.some((item) => typeof item === 'object')) return undefined
    this.#taken.add(name)
    return value.map(String)
  }

  /** Sets what rejects all requests that this object serves, in the config that is made of it. Without it, that of the object around it is used. */
  closedBy(close: () => void): this {
    this.#close = close
    return this
  }

  /** Fields whose loss opens nothing. `*` at the end of a name stands for any text. */
  withHarmless(...names: readonly string[]): this {
    for (const name of names) this.#harmless.add(name)
    return this
  }

  /** Fields that protect nothing if their value is false. */
  withSwitches(...names: readonly string[]): this {
    return this.withHarmless(...names.filter((name) => this.#peek(name) === false))
  }

  /** Reports that a field, or the object itself, is left out or changed. */
  lose(name: string, reason: string): void {
    if (name !== '') this.#taken.add(name)
    this.#losses.push({ path: [this.path, name].filter((part) => part !== '').join('.'), reason })
  }

  /** Reports that a field which protects something is left out; `finish` closes what it protected. */
  reject(name: string, reason: string = REJECTED): void {
    this.lose(name, reason)
    this.#isRejected = true
  }

  /** Reports the object as a whole, instead of each of its fields. */
  loseAll(reason: string): void {
    for (const name of this.names) this.#taken.add(name)
    this.#inner.clear()
    this.lose('', reason)
  }

  /** Reports all fields that were not taken, those of inner objects included. */
  finish(): void {
    for (const name of this.names) {
      if (this.#taken.has(name) || !this.has(name)) continue
      if (this.#isHarmless(name)) this.lose(name, 'has no equivalent, or is not supported by import')
      else this.reject(name)
    }
    for (const inner of this.#inner.values()) inner.finish()
    if (this.#isRejected) this.#closeNearest()
  }

  #isHarmless(name: string): boolean {
    return this.#harmless.has(name) || this.#harmless.values().some((pattern) => pattern.endsWith('*') && name.startsWith(pattern.slice(0, -1)))
  }

  #closeNearest(): void {
    if (this.#close !== undefined) this.#close()
    else if (this.#parent !== undefined) this.#parent.#closeNearest()
  }

  #peek(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined
  }

  #open(value: unknown, name: string): ImportSource {
    const inner = this.#inner.get(name) ?? new ImportSource(value, this.path === '' ? name : `${this.path}.${name}`, this.#losses, this)
    this.#inner.set(name, inner)
    return inner
  }
}

/** The object without fields that are undefined, and without empty objects and lists; undefined if nothing is left. */
export function compact<T extends Readonly<Record<string, unknown>>>(fields: T): T | undefined {
  const isEmpty = (value: unknown): boolean => value === undefined || (Array.isArray(value) && value.length === 0)
  const kept = Object.entries(fields).filter(([, value]) => !isEmpty(value))
  return kept.length === 0 ? undefined : (Object.fromEntries(kept) as T)
}

/** A policy that rejects every request: it replaces authentication or authorization that cannot be carried over. */
export const REJECT_ALL = { authorization: { action: 'Deny', policy: { matchExpressions: ['true'] } } } as const
const REJECTED = 'is not carried over; requests are rejected by an authorization rule, which you replace by a policy of your own'

/** Makes a route, listener or section reject all requests. */
export function closePolicies(owner: Record<string, unknown>): void {
  owner['policies'] = { ...(owner['policies'] as object | undefined), ...REJECT_ALL }
}

/** A value of the file in which `${` is no placeholder. */
export const literal = (text: string): string => text.replaceAll('${', () => '$${')

const MAX_DIGITS = 99_999

/** A duration of some seconds, in the smallest unit that has no more than five digits. */
export function toDuration(seconds: number): string {
  for (const [unit, perSecond] of [
    ['ms', 1000],
    ['s', 1],
    ['m', 1 / 60],
  ] as const) {
    const amount = Math.round(seconds * perSecond)
    if (amount <= MAX_DIGITS) return `${amount}${unit}`
  }
  return `${Math.min(Math.round(seconds / 3600), MAX_DIGITS)}h`
}

/** A duration of a field in seconds; undefined if there is none that counts. */
export function importSeconds(source: ImportSource | undefined, name: string): string | undefined {
  const value = source?.number(name)
  if (value === undefined) return undefined
  if (Math.round(value * 1000) > 0) return toDuration(value)
  source?.lose(name, 'is no duration')
  return undefined
}
