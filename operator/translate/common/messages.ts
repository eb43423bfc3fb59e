import { messageKinds, type MessageKind } from '#api/config/message-kinds.ts'
import type { MessageTypes } from '#gen/config/types.ts'
import type { ConfigMessage } from '../../model/translation.ts'

const kindOrder = Object.keys(messageKinds) as MessageKind[]

/** A message as one of a list. */
export const messageOf = <K extends keyof MessageTypes>(kind: K, message: MessageTypes[K]): ConfigMessage => ({ kind, key: message.key, message })

/** The messages of one kind: those that are held, and the list that was made of them. */
interface OneKind {
  /** By key. Several messages of one key are equal, unless some of them are about to be released. */
  readonly held: Map<string, { readonly entry: ConfigMessage; count: number }[]>
  /** Keys whose first message may differ from the list. */
  readonly changed: Set<string>
  list: readonly ConfigMessage[]
}

/** The messages of one Gateway while they come and go. A message is listed as long as something holds it; of several with one key, the first. */
export class Messages {
  readonly #byKind = new Map<MessageKind, OneKind>(kindOrder.map((kind) => [kind, { held: new Map(), changed: new Set(), list: [] }]))
  #list: readonly ConfigMessage[] | undefined

  hold(entry: ConfigMessage): void {
    const { held, changed } = this.#of(entry.kind)
    const entries = held.get(entry.key)
    const known = entries?.find(({ entry: { message } }) => message === entry.message)
    if (known) {
      known.count++
      return
    }
    changed.add(entry.key)
    if (entries) entries.push({ entry, count: 1 })
    else held.set(entry.key, [{ entry, count: 1 }])
  }

  release({ kind, key, message }: ConfigMessage): void {
    const { held, changed } = this.#of(kind)
    const entries = held.get(key) ?? []
    const index = entries.findIndex(({ entry }) => entry.message === message)
    const known = entries[index]
    if (!known || --known.count > 0) return
    changed.add(key)
    entries.splice(index, 1)
    if (entries.length === 0) held.delete(key)
  }

  /** Sorted by kind and key. An entry keeps its identity as long as its message does, and the list as long as its entries do. */
  list(): readonly ConfigMessage[] {
    let isChanged = this.#list === undefined
    for (const one of this.#byKind.values()) isChanged = updateList(one) || isChanged
    if (isChanged) this.#list = kindOrder.flatMap((kind) => this.#of(kind).list)
    return this.#list ?? []
  }

  /** The part of the list with one kind. */
  of(kind: MessageKind): readonly ConfigMessage[] {
    return this.#of(kind).list
  }

  #of(kind: MessageKind): OneKind {
    return this.#byKind.get(kind) as OneKind
  }
}

/** Brings the list up to date. It costs no comparison of entries that did not change. */
function updateList(one: OneKind): boolean {
  const { held, changed, list } = one
  if (changed.size === 0) return false
  const next: ConfigMessage[] = []
  let isChanged = false
  let from = 0
  for (const key of [...changed].sort()) {
    const at = placeOf(list, key, from)
    while (from < at) next.push(list[from++] as ConfigMessage)
    const old = list[at]?.key === key ? list[at] : undefined
    const now = held.get(key)?.[0]?.entry
    if (old) from++
    if (now) next.push(now)
    isChanged ||= old !== now
  }
  changed.clear()
  if (!isChanged) return false
  while (from < list.length) next.push(list[from++] as ConfigMessage)
  one.list = next
  return true
}

/** Index of the first entry, not before `low`, whose key is not before `key`. */
function placeOf(list: readonly ConfigMessage[], key: string, low: number): number {
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((list[middle]?.key ?? '') < key) low = middle + 1
    else high = middle
  }
  return low
}
