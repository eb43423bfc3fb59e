import { hash } from 'node:crypto'
import { readApiKeyEntry } from '#api/credentials/api-key.ts'
import type { Secret } from '#gen/config/types.ts'

/** What a key comes with; usable as `apiKey.<field>`. */
export type KeyMetadata = Readonly<Record<string, unknown>>

/** Keys by digest: looking one up takes as long however much of it is right, and however many there are. */
export type KeyTable = ReadonlyMap<string, KeyMetadata>

/** SHA-256 in hex. */
export function digestKey(key: string): string {
  return hash('sha256', key)
}

/** The keys of all entries; one that cannot be used is passed over, and the others work (traffic.md §8.5). */
export function readKeys(secrets: readonly Secret[]): KeyTable {
  const table = new Map<string, KeyMetadata>()
  for (const { data = {} } of secrets)
    for (const value of Object.values(data)) {
      const entry = readEntry(value)
      if (entry !== undefined) table.set(entry.digest, entry.metadata)
    }
  return table
}

function readEntry(value: string): { digest: string; metadata: KeyMetadata } | undefined {
  const entry = readApiKeyEntry(value)
  if ('problem' in entry) return undefined
  return { digest: entry.keyHash ?? digestKey(entry.key), metadata: entry.metadata }
}
