import { hash } from 'node:crypto'
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

/** The key itself, or a JSON object with `key` or `keyHash` (`sha256:` and hex), and perhaps `metadata`. */
function readEntry(value: string): { digest: string; metadata: KeyMetadata } | undefined {
  if (value.trim() === '') return undefined
  if (!value.trimStart().startsWith('{')) return { digest: digestKey(value), metadata: {} }
  const { key, keyHash, metadata = {} } = parseObject(value)
  if (!isObject(metadata) || (key === undefined) === (keyHash === undefined)) return undefined
  if (typeof key === 'string' && key !== '') return { digest: digestKey(key), metadata }
  const [, digest] = typeof keyHash === 'string' ? (/^sha256:([0-9a-f]{64})$/i.exec(keyHash) ?? []) : []
  return digest === undefined ? undefined : { digest: digest.toLowerCase(), metadata }
}

function parseObject(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return {}
  }
}

const isObject = (value: unknown): value is KeyMetadata => typeof value === 'object' && value !== null && !Array.isArray(value)
