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
 * An object of a config to import. Each field is taken at most once; `finish` reports all fields that nothing took, so that no setting is lost silently.
 */
export class ImportSource {
  readonly path: string
  readonly #fields: Readonly<Record<string, unknown>>
  readonly #losses: Loss[]
  readonly #taken = new Set<string>()
  readonly #inner = new Map<string, ImportSource>()

  constructor(value: unknown, path: string, losses: Loss[]) {
    this.#fields = isObject(value) ? value : {}
    this.path = path
    this.#losses = losses
  }

  has(name: string): boolean {
    return this.#fields[name] !== undefined && this.#fields[name] !== null
  }

  get names(): readonly string[] {
    return Object.keys(this.#fields)
  }

  take(name: string): unknown {
    this.#taken.add(name)
    return this.#fields[name] ?? undefined
  }

  /** A text, or a number or boolean as text. */
  text(name: string): string | undefined {
    const value = this.#peek(name)
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return undefined
    this.#taken.add(name)
    return String(value)
  }

  number(name: string): number | undefined {
    const value = Number(this.#peek(name) ?? NaN)
    if (!Number.isFinite(value)) return undefined
    this.#taken.add(name)
    return value
  }

  object(name: string): ImportSource | undefined {
    const value = this.#peek(name)
    if (!isObject(value)) return undefined
    this.#taken.add(name)
    return this.#open(value, name)
  }

  /** Objects of a list. */
  list(name: string): ImportSource[] {
    const value = this.#peek(name)
    if (!Array.isArray(value)) return []
    this.#taken.add(name)
    return value.map((item: unknown, index) => this.#open(item, `${name}[${index}]`))
  }

  texts(name: string): string[] | undefined {
    const value = this.#peek(name)
    if (!Array.isArray(value) || value.some((item) => isObject(item))) return undefined
    this.#taken.add(name)
    return value.map(String)
  }

  /** Reports that a field, or the object itself, is left out or changed. */
  lose(name: string, reason: string): void {
    if (name !== '') this.#taken.add(name)
    this.#losses.push({ path: [this.path, name].filter((part) => part !== '').join('.'), reason })
  }

  /** Reports all fields that were not taken, those of inner objects included. */
  finish(): void {
    for (const name of this.names) if (!this.#taken.has(name) && this.has(name)) this.lose(name, 'has no equivalent, or is not supported by import')
    for (const inner of this.#inner.values()) inner.finish()
  }

  #peek(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined
  }

  #open(value: unknown, name: string): ImportSource {
    const inner = this.#inner.get(name) ?? new ImportSource(value, this.path === '' ? name : `${this.path}.${name}`, this.#losses)
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
export const REJECTED = 'is not carried over; requests are rejected by an authorization rule, which you replace by a policy of your own'

/** A value of the file in which `${` is no placeholder. */
export const literal = (text: string): string => text.replaceAll('${', () => '$${')
