import type { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { HeaderList } from '../../http/headers.ts'
import type { PolicyState } from '../state.ts'
import type { Freshness, Storable } from './storable.ts'

/** A stored response. Never changed; a revalidation replaces it. */
export interface CachedResponse {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Buffer
  readonly freshness: Freshness
  /** By the monotonic clock. */
  readonly storedAtMs: number
}

/** Where the responses of a request are stored. */
export interface CacheKey {
  /** The URI. */
  readonly uri: string
  /** Policy, route, backend and tenant: responses of different groups are never shared. */
  readonly group: string
}

/** Bytes of all responses that one worker stores. */
const MAX_BYTES = 16 * 1024 * 1024
/** Bytes of the largest body that is stored. */
export const MAX_BODY_BYTES = 1024 * 1024
/** Bytes that an entry occupies besides headers and body. */
const OVERHEAD_BYTES = 1024

interface Entry extends CachedResponse {
  readonly uri: string
  readonly groupKey: string
  readonly size: number
}

/** The variants of the response to one URI in one group. */
interface Group {
  /** Names of `vary` of the latest response. */
  readonly vary: readonly string[]
  readonly keys: Set<string>
}

/** Caches by the registry of their thread. */
const caches = new WeakMap<PolicyState['registry'], HttpCache>()

/** Where a cache stores responses. */
export interface ResponseStore {
  /** The response that is stored for a request; otherwise which part of the key is unknown (RFC 9211 §2.2). */
  find(key: CacheKey, request: HeaderList): FoundResponse | Promise<FoundResponse>
  /** Stores a response. `key` is the one that was looked up. */
  store(key: CacheKey, request: HeaderList, storable: Storable, response: CachedResponse): void
  /** Drops the response that is stored for a request. */
  remove(key: CacheKey, request: HeaderList): void | Promise<void>
  /** Drops all responses of a URI, those of all groups (RFC 9111 §4.4). */
  invalidate(uri: string): void
}

type FoundResponse = CachedResponse | 'uri-miss' | 'vary-miss'

/** The responses that one worker stores (traffic.md §8.15). Drops the least recently used one first. */
export class HttpCache implements ResponseStore {
  /** In order of use. */
  readonly #entries = new Map<string, Entry>()
  readonly #groups = new Map<string, Group>()
  /** Keys of groups by URI, for invalidation. */
  readonly #uris = new Map<string, Set<string>>()
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes
  }

  /** The cache of a worker. */
  static of({ registry }: Pick<PolicyState, 'registry'>): HttpCache {
    // The registry lives as long as the thread.
    let cache = caches.get(registry)
    if (cache === undefined) caches.set(registry, (cache = new HttpCache()))
    return cache
  }

  /** Bytes in use; never more than the limit. */
  get bytes(): number {
    return this.#bytes
  }

  find({ uri, group }: CacheKey, request: HeaderList): CachedResponse | 'uri-miss' | 'vary-miss' {
    const known = this.#groups.get(uri + group)
    if (known === undefined) return 'uri-miss'
    const key = keyOf(uri + group, known.vary, request)
    const entry = this.#entries.get(key)
    if (entry === undefined) return 'vary-miss'
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry
  }

  /** Stores a response. Responses of the group with another `vary` are dropped, because they cannot be told apart any more. */
  store({ uri, group }: CacheKey, request: HeaderList, { vary }: Storable, response: CachedResponse): void {
    const size = sizeOf(response)
    if (response.body.length > MAX_BODY_BYTES || size > this.#maxBytes) return
    const groupKey = uri + group
    let known = this.#groups.get(groupKey)
    if (known !== undefined && known.vary.join() !== vary.join()) {
      for (const key of known.keys) this.#delete(key)
      known = undefined
    }
    const key = keyOf(groupKey, vary, request)
    this.#delete(key)
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes + size <= this.#maxBytes) break
      this.#delete(oldest)
    }
    known = this.#groups.get(groupKey)
    if (known === undefined) this.#groups.set(groupKey, (known = { vary, keys: new Set() }))
    known.keys.add(key)
    const groups = this.#uris.get(uri)
    if (groups === undefined) this.#uris.set(uri, new Set([groupKey]))
    else groups.add(groupKey)
    this.#entries.set(key, { ...response, uri, groupKey, size })
    this.#bytes += size
  }

  remove({ uri, group }: CacheKey, request: HeaderList): void {
    const known = this.#groups.get(uri + group)
    if (known !== undefined) this.#delete(keyOf(uri + group, known.vary, request))
  }

  invalidate(uri: string): void {
    for (const groupKey of this.#uris.get(uri) ?? []) for (const key of this.#groups.get(groupKey)?.keys ?? []) this.#delete(key)
  }

  #delete(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#bytes -= entry.size
    const { uri, groupKey } = entry
    const group = this.#groups.get(groupKey)
    group?.keys.delete(key)
    if (group?.keys.size !== 0) return
    this.#groups.delete(groupKey)
    const groups = this.#uris.get(uri)
    groups?.delete(groupKey)
    if (groups?.size === 0) this.#uris.delete(uri)
  }
}

/** A digest of bounded length. */
export function digestOf(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64')
}

/** The key of a response among those of its group. */
export function keyOf(groupKey: string, vary: readonly string[], request: HeaderList): string {
  if (vary.length === 0) return groupKey
  return groupKey + digestOf(vary.map((name) => (request.has(name) ? request.getAll(name).join(', ') : null)))
}

function sizeOf({ headers, body }: CachedResponse): number {
  return body.length + OVERHEAD_BYTES + headers.raw.reduce((sum, text) => sum + 2 * text.length, 0)
}
