import { typeUrlOf, wireNameOf } from '#api/config/wire.ts'
import { ADDRESS_TYPE, RESOURCE_TYPE } from '#api/names.ts'
import type { Encode, Entry, ServedMessage } from './encode.ts'

export type Entries = ReadonlyMap<string, Entry>

/** Resources by type URL and name. */
export interface Snapshot {
  readonly types: ReadonlyMap<string, Entries>
}

/** Names that were added, changed or removed, by type URL. */
export type Changes = ReadonlyMap<string, readonly string[]>

export const TYPE_URLS: readonly string[] = [RESOURCE_TYPE, ADDRESS_TYPE]
const NO_ENTRIES: Entries = new Map()

/** The resources for the data planes of one Gateway, which follow its messages. */
export class GatewaySnapshot implements Snapshot {
  readonly types = new Map(TYPE_URLS.map((typeUrl) => [typeUrl, new Map<string, Entry>()]))
  #messages: readonly ServedMessage[] = []

  /**
   * Replaces the messages, whose names are distinct. What the old and the new list have in common at both ends is not looked at, so that an edit costs
   * a comparison by identity per message; entries of equal content stay.
   */
  update(messages: readonly ServedMessage[], encode: Encode): Changes {
    const old = this.#messages
    this.#messages = messages
    const changes = new Map<string, string[]>()
    if (old === messages) return changes
    const [start, endOfOld, end] = findDifference(old, messages)
    const names = new Set<string>()
    const note = (typeUrl: string, name: string): void => {
      const noted = changes.get(typeUrl)
      if (noted) noted.push(name)
      else changes.set(typeUrl, [name])
    }
    for (const message of messages.slice(start, end)) {
      const name = wireNameOf(message.kind, message.key)
      names.add(name)
      const entries = this.#entriesOf(message)
      const before = entries.get(name)
      const entry = encode(message, before)
      if (entry.version === before?.version) continue
      entries.set(name, entry)
      note(entry.typeUrl, name)
    }
    for (const message of old.slice(start, endOfOld)) {
      const name = wireNameOf(message.kind, message.key)
      if (!names.has(name) && this.#entriesOf(message).delete(name)) note(typeUrlOf(message.kind), name)
    }
    return changes
  }

  #entriesOf({ kind }: ServedMessage): Map<string, Entry> {
    return this.types.get(typeUrlOf(kind)) ?? new Map()
  }
}

/** Where two lists begin to differ, and from where on they are the same again. */
function findDifference(old: readonly ServedMessage[], now: readonly ServedMessage[]): [start: number, endOfOld: number, end: number] {
  let start = 0
  let [endOfOld, end] = [old.length, now.length]
  while (start < endOfOld && start < end && old[start]?.message === now[start]?.message) start++
  while (endOfOld > start && end > start && old[endOfOld - 1]?.message === now[end - 1]?.message) {
    endOfOld--
    end--
  }
  return [start, endOfOld, end]
}

/** The services of every Gateway, for clients without a role (operator.md §6.2). */
export function buildGlobalSnapshot(snapshots: Iterable<Snapshot>): Snapshot {
  const services = new Map<string, Entry>()
  for (const snapshot of snapshots) for (const [name, entry] of snapshot.types.get(ADDRESS_TYPE) ?? NO_ENTRIES) services.set(name, entry)
  return { types: new Map([[ADDRESS_TYPE, services]]) }
}

export function compareSnapshots(before: Snapshot | undefined, after: Snapshot | undefined): Changes {
  const changes = new Map<string, string[]>()
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
