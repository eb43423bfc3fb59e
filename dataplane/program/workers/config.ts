import type { MessageKind } from '#api/config/message-kinds.ts'
import { plural, type ConfigBatch, type ConfigMessage, type ConfigSnapshot } from '../../config/store.ts'
import type { EncodedConfig } from './messages.ts'

/** A change of the config. The number of an upsert tells versions of its message apart. */
interface ConfigDelta {
  readonly upserts: readonly (readonly [kind: MessageKind, number: number, message: { readonly key: string }])[]
  readonly removals: ConfigBatch['removals']
}

/** Encodes changes of the config for workers. */
export class ConfigEncoder {
  readonly #numbers = new WeakMap<object, number>()
  #last = 0
  #cached: { readonly from: ConfigSnapshot | undefined; readonly to: ConfigSnapshot; readonly encoded: EncodedConfig } | undefined

  /** The change from one version to another; from undefined: all of it. Workers with the same version get the same memory. */
  encode(from: ConfigSnapshot | undefined, to: ConfigSnapshot): EncodedConfig {
    if (this.#cached?.from === from && this.#cached?.to === to) return this.#cached.encoded
    const json = JSON.stringify(this.#deltaOf(from, to))
    const memory = new SharedArrayBuffer(Buffer.byteLength(json))
    Buffer.from(memory).write(json)
    const encoded = { json: memory }
    this.#cached = { from, to, encoded }
    return encoded
  }

  #deltaOf(from: ConfigSnapshot | undefined, to: ConfigSnapshot): ConfigDelta {
    const upserts: ConfigDelta['upserts'][number][] = []
    const removals: ConfigBatch['removals'][number][] = []
    for (const kind of Object.keys(plural) as MessageKind[]) {
      const before: ReadonlyMap<string, { readonly key: string }> | undefined = from?.[plural[kind]]
      const after: ReadonlyMap<string, { readonly key: string }> = to[plural[kind]]
      if (before === after) continue
      for (const [key, message] of after) if (before?.get(key) !== message) upserts.push([kind, this.#numberOf(message), message])
      for (const key of before?.keys() ?? []) if (!after.has(key)) removals.push({ kind, key })
    }
    return { upserts, removals }
  }

  #numberOf(message: object): number {
    let number = this.#numbers.get(message)
    if (number === undefined) this.#numbers.set(message, (number = ++this.#last))
    return number
  }
}

/** Names of sections with state, by the section's object; see `SharedState.nameOf`. */
export type SectionNames = WeakMap<object, string>

/** Decodes a change of the config, and adds the names of its sections with state: the local rate limits. */
export function decodeConfig({ json }: EncodedConfig, names: SectionNames): ConfigBatch {
  const { upserts, removals } = JSON.parse(Buffer.from(json).toString()) as ConfigDelta
  for (const [kind, number, message] of upserts) if (kind === 'policy') nameSections(message, `${kind} ${message.key} ${number}`, names)
  return { upserts: upserts.map(([kind, , message]) => ({ kind, message }) as ConfigMessage), removals }
}

/** All workers walk the same JSON, so they count sections alike. */
function nameSections(message: object, prefix: string, names: SectionNames): void {
  let count = 0
  const visit = (value: object): void => {
    for (const [field, inner] of Object.entries(value) as [string, unknown][]) {
      if (typeof inner !== 'object' || inner === null) continue
      if (field === 'local' && Array.isArray(inner)) names.set(inner, `${prefix} ${count++}`)
      visit(inner)
    }
  }
  visit(message)
}
