import { apiKeyNames } from '../../request/exchange/key-names.ts'
import { parseStored } from '#api/cel/index.ts'
import { hash } from 'node:crypto'
import { readApiKeyEntry } from '#api/credentials/api-key.ts'
import type { Secret } from '#gen/config/types.ts'

/** Metadata of a key, available to expressions as `apiKey.<field>`. */
type KeyMetadata = Readonly<Record<string, unknown>>

/** An accepted key. */
interface KnownKey {
  readonly metadata: KeyMetadata
  /** Milliseconds since 1970 from which the key is rejected; Infinity: never. */
  readonly expiresMs: number
}

/** Keys by digest. The time of a lookup depends neither on matching prefixes nor on the number of keys. */
export type KeyTable = ReadonlyMap<string, KnownKey>

/** Digest of a key: SHA-256 in hex. */
export function digestKey(key: string): string {
  return hash('sha256', key)
}

/** Reads the keys of all entries. Invalid entries are skipped (traffic.md §8.5). */
export function readKeys(secrets: readonly Secret[]): KeyTable {
  const table = new Map<string, KnownKey>()
  for (const { data = {} } of secrets)
    for (const [name, value] of Object.entries(data)) {
      const entry = readEntry(value)
      if (entry === undefined) continue
      table.set(entry.digest, entry)
      apiKeyNames.set(entry.metadata, name)
    }
  return table
}

function readEntry(value: string): (KnownKey & { readonly digest: string }) | undefined {
  const entry = readApiKeyEntry(value, parseMetadata)
  if ('problem' in entry) return undefined
  return { digest: entry.keyHash ?? digestKey(entry.key), metadata: entry.metadata, expiresMs: entry.expiresMs ?? Infinity }
}

/** Metadata is a variable of expressions, so integers keep 64 bits. */
function parseMetadata(text: string): unknown {
  const value = parseStored(text)
  if (value === undefined) throw new SyntaxError('not JSON')
  return value
}
