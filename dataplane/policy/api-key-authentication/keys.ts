import { parseStored } from '#api/cel/index.ts'
import { hash } from 'node:crypto'
import { readApiKeyEntry } from '#api/credentials/api-key.ts'
import type { Secret } from '#gen/config/types.ts'

/** Metadata of a key, available to expressions as `apiKey.<field>`. */
type KeyMetadata = Readonly<Record<string, unknown>>

/** Metadata by digest of the key. The time of a lookup depends neither on matching prefixes nor on the number of keys. */
export type KeyTable = ReadonlyMap<string, KeyMetadata>

/** Digest of a key: SHA-256 in hex. */
export function digestKey(key: string): string {
  return hash('sha256', key)
}

/** Reads the keys of all entries. Invalid entries are skipped (traffic.md §8.5). */
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
  const entry = readApiKeyEntry(value, parseMetadata)
  if ('problem' in entry) return undefined
  return { digest: entry.keyHash ?? digestKey(entry.key), metadata: entry.metadata }
}

/** Metadata is a variable of expressions, so integers keep 64 bits. */
function parseMetadata(text: string): unknown {
  const value = parseStored(text)
  if (value === undefined) throw new SyntaxError('not JSON')
  return value
}
