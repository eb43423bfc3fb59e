import { randomBytes } from 'node:crypto'
import { HeaderList } from '../../http/headers.ts'
import type { ValueStore } from '../../runtime/value-store.ts'
import type { Storable } from './storable.ts'
import { digestOf, keyOf, MAX_BODY_BYTES, type CachedResponse, type CacheKey, type ResponseStore } from './store.ts'

const HOUR_MS = 3_600_000
/** Stale responses with a validator stay for so long, to be revalidated; and none stays longer than a day. */
const STALE_MS = HOUR_MS
const MAX_STORED_MS = 24 * HOUR_MS
/** Outlives every response that was stored before the invalidation. */
const MARK_MS = MAX_STORED_MS + HOUR_MS
const MAX_SMALL_BYTES = 4096
const MAX_HEAD_BYTES = 64 * 1024

/** Clocks in milliseconds: monotonic, and since 1970. */
export interface Clocks {
  readonly monotonicMs: () => number
  readonly epochMs: () => number
}

/** What is known of a URI since a request looked it up. */
interface Known {
  /** Changes with each invalidation of the URI. */
  readonly mark: string
}

/**
 * Responses in a store that replicas share (traffic.md §8.15). Failures of the store are misses, and lose what was to be stored.
 * An entry has the mark of its URI; an invalidation sets another mark, so that all entries before it are misses.
 */
export class RemoteResponses implements ResponseStore {
  readonly #values: ValueStore
  readonly #clocks: Clocks
  /** By the key of the request; an entry is stored with the mark that its request saw. */
  readonly #known = new WeakMap<CacheKey, Known>()

  constructor(values: ValueStore, clocks: Clocks) {
    this.#values = values
    this.#clocks = clocks
  }

  async find(key: CacheKey, request: HeaderList): Promise<CachedResponse | 'uri-miss' | 'vary-miss'> {
    const group = digestOf([key.uri, key.group])
    const [names, mark] = await Promise.all([this.#values.get(`proxy:http:vary:${group}`, MAX_SMALL_BYTES), this.#markOf(key.uri)])
    // Without the mark, nothing is known of invalidations.
    if (mark === undefined) return 'uri-miss'
    this.#known.set(key, { mark })
    const vary = names ? readVary(names.toString()) : undefined
    if (vary === undefined) return 'uri-miss'
    const value = await this.#values.get(entryName(key, vary, request), MAX_BODY_BYTES + MAX_HEAD_BYTES)
    return (value ? this.#decode(value, mark) : undefined) ?? (vary.length === 0 ? 'uri-miss' : 'vary-miss')
  }

  store(key: CacheKey, request: HeaderList, { vary, freshness }: Storable, response: CachedResponse): void {
    const known = this.#known.get(key)
    const head = known && this.#headOf(response, known.mark)
    if (head === undefined || response.body.length > MAX_BODY_BYTES) return
    const ttlMs = Math.min(MAX_STORED_MS, freshness.lifetimeMs + STALE_MS)
    const length = Buffer.alloc(4)
    length.writeUInt32LE(head.length)
    this.#values.set(`proxy:http:vary:${digestOf([key.uri, key.group])}`, Buffer.from(JSON.stringify(vary)), MAX_STORED_MS)
    this.#values.set(entryName(key, vary, request), Buffer.concat([length, head, response.body]), ttlMs)
  }

  async remove(key: CacheKey, request: HeaderList): Promise<void> {
    const names = await this.#values.get(`proxy:http:vary:${digestOf([key.uri, key.group])}`, MAX_SMALL_BYTES)
    const vary = names ? readVary(names.toString()) : undefined
    if (vary !== undefined) this.#values.remove(entryName(key, vary, request))
  }

  invalidate(uri: string): void {
    this.#values.set(`proxy:http:mark:${uri}`, randomBytes(12), MARK_MS)
  }

  /** undefined: it cannot be read. */
  async #markOf(uri: string): Promise<string | undefined> {
    const mark = await this.#values.get(`proxy:http:mark:${uri}`, MAX_SMALL_BYTES)
    return mark === null ? undefined : (mark?.toString('base64') ?? '')
  }

  #headOf({ status, headers, freshness, storedAtMs }: CachedResponse, mark: string): Buffer | undefined {
    const { monotonicMs, epochMs } = this.#clocks
    const head = Buffer.from(JSON.stringify({ status, headers: headers.raw, freshness, storedAtMs: storedAtMs - monotonicMs() + epochMs(), mark }))
    return head.length > MAX_HEAD_BYTES ? undefined : head
  }

  #decode(value: Buffer, mark: string): CachedResponse | undefined {
    const end = value.length < 4 ? Infinity : 4 + value.readUInt32LE(0)
    if (end > value.length) return undefined
    const head = readHead(value.toString('utf8', 4, end))
    if (head === undefined || head.mark !== mark) return undefined
    const { monotonicMs, epochMs } = this.#clocks
    const { status, headers, freshness } = head
    // A clock that differs must not make a response younger than it can be.
    const storedAtMs = monotonicMs() - Math.max(0, epochMs() - head.storedAtMs)
    return { status, headers: new HeaderList([...headers]), freshness, storedAtMs, body: value.subarray(end) }
  }
}

const entryName = ({ uri, group }: CacheKey, vary: readonly string[], request: HeaderList): string =>
  `proxy:http:response:${digestOf([keyOf(uri + group, vary, request)])}`

interface Head {
  readonly status: number
  readonly headers: readonly string[]
  readonly freshness: CachedResponse['freshness']
  readonly storedAtMs: number
  readonly mark: string
}

const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
// oxlint-disable-next-line no-control-regex -- header values have no controls but tabs
const VALUE = /^[^\0-\x08\n-\x1f\x7f]*$/

/** Reads a head; undefined if it is none, because others may write the store. */
function readHead(text: string): Head | undefined {
  const head = parse(text) as Partial<Head> | undefined
  if (typeof head !== 'object' || head === null) return undefined
  const { status, headers, freshness, storedAtMs, mark } = head
  if (!Number.isInteger(status) || status === undefined || status < 200 || status > 599 || typeof mark !== 'string') return undefined
  if (typeof storedAtMs !== 'number' || typeof freshness?.lifetimeMs !== 'number' || typeof freshness.initialAgeMs !== 'number') return undefined
  if (!Array.isArray(headers) || headers.length % 2 !== 0) return undefined
  const isValid = (headers as unknown[]).every((part, index) => typeof part === 'string' && (index % 2 === 0 ? NAME : VALUE).test(part))
  return isValid ? { status, headers: headers as readonly string[], freshness, storedAtMs, mark } : undefined
}

function readVary(text: string): readonly string[] | undefined {
  const names = parse(text)
  return Array.isArray(names) && names.every((name) => typeof name === 'string') ? names : undefined
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
