import { ADDRESS_TYPE, RESOURCE_TYPE } from '#api/names.ts'
import type { Encode, Entry, ServedMessage } from './encode.ts'

export type Entries = ReadonlyMap<string, Entry>

/** Resources for the data planes of one Gateway, by type URL and name. */
export interface Snapshot {
  /** The list it was built from; an identical list needs no comparison. */
  readonly messages: readonly ServedMessage[]
  readonly types: ReadonlyMap<string, Entries>
}

/** Names that were added, changed or removed, by type URL. */
export type Changes = ReadonlyMap<string, readonly string[]>

export const TYPE_URLS: readonly string[] = [RESOURCE_TYPE, ADDRESS_TYPE]
const NO_ENTRIES: Entries = new Map()

/** Encodes a list of messages, reusing the entries of `previous` that are equal. Of two messages of one name the last counts. */
export function buildSnapshot(messages: readonly ServedMessage[], previous: Snapshot | undefined, encode: Encode): Snapshot {
  if (previous?.messages === messages) return previous
  const before = new Map<string, Entry>()
  for (const entries of previous?.types.values() ?? []) for (const [name, entry] of entries) before.set(name, entry)
  const types = new Map(TYPE_URLS.map((typeUrl) => [typeUrl, new Map<string, Entry>()]))
  for (const message of messages) {
    const entry = encode(message, before.get(`${message.kind}/${message.key}`))
    types.get(entry.typeUrl)?.set(entry.name, entry)
  }
  return { messages, types }
}

/** The services of every Gateway, for clients without a role (operator.md §6.2). */
export function buildGlobalSnapshot(snapshots: Iterable<Snapshot>): Snapshot {
  const services = new Map<string, Entry>()
  for (const snapshot of snapshots) for (const [name, entry] of snapshot.types.get(ADDRESS_TYPE) ?? NO_ENTRIES) services.set(name, entry)
  return { messages: [], types: new Map([[ADDRESS_TYPE, services]]) }
}

export function compareSnapshots(before: Snapshot | undefined, after: Snapshot | undefined): Changes {
  const changes = new Map<string, string[]>()
  if (before === after) return changes
  for (const typeUrl of TYPE_URLS) {
    const old = before?.types.get(typeUrl) ?? NO_ENTRIES
    const now = after?.types.get(typeUrl) ?? NO_ENTRIES
    const names: string[] = []
    for (const [name, entry] of now) if (old.get(name)?.version !== entry.version) names.push(name)
    for (const name of old.keys()) if (!now.has(name)) names.push(name)
    if (names.length > 0) changes.set(typeUrl, names)
  }
  return changes
}
