import { createHash } from 'node:crypto'
import { debounce, type Clock } from '../serve/debounce.ts'
import type { KeySetRequest } from '../model/translation.ts'
import { describeSource, type FetchKeySet } from './fetch.ts'
import { readKeySet } from './key-set.ts'

export interface StoreOptions {
  readonly fetch: FetchKeySet
  readonly clock: Clock
  /** Key sets were fetched or changed, or the first fetch of one failed; called once for changes that happen together. */
  readonly onChange: () => void
  /** A fetch failed; called once until a fetch succeeds or the reason changes. */
  readonly onError: (url: string, error: unknown) => void
  readonly memory?: KeySetMemory
}

/** Keeps key sets across restarts. A source is named by the SHA-256 of its URL and TLS settings, in hexadecimal. */
export interface KeySetMemory {
  /** The stored key set, which is in force until the first fetch succeeds. */
  recall(source: string): string | undefined
  /** Stores a key set that was fetched for the first time or changed. */
  keep(source: string, text: string): void
  /** Deletes a key set that is no longer wanted. Not called on close. */
  forget(source: string): void
}

export interface KeySetStore {
  /** Fetches these key sets from now on, and no others. Returns true if that changed `current`. */
  want(requests: readonly KeySetRequest[]): boolean
  /** Key sets that have been fetched, by id. A failed refresh changes nothing. */
  current(): ReadonlyMap<string, string>
  /** Errors of key sets that have never been fetched, by id. */
  errors(): ReadonlyMap<string, string>
  close(): void
}

const MAX_PARALLEL = 10
const FIRST_RETRY_MS = 200
const MAX_RETRY_MS = 15_000
/** Directory mode does not check the API's lower bound of cacheDuration; timers overflow above the upper one. */
const MIN_CACHE_MS = 1000
const MAX_CACHE_MS = 86_400_000
/** Key sets that are fetched together are translated together. */
const CHANGE_TIMES = { quietMs: 10, maxMs: 100 }

/** One distinct URL and TLS settings. */
interface Source {
  readonly key: string
  request: KeySetRequest
  text?: string
  /** Number of failures since the last success. */
  failures: number
  reportedError?: string
  /** Time of the last successful fetch. */
  fetchedAt?: number
  isQueued: boolean
  cancelTimer: () => void
  readonly abort: AbortController
}

/** Identity of a source. Whether endpoints are given is part of it; which ones is not, because they may change. */
function sourceKey({ url, tls, endpoints }: KeySetRequest): string {
  const parts = [url.host, url.port, url.path, endpoints !== undefined, tls?.servername, tls?.verify, tls?.ca, tls?.certificate, tls?.privateKey]
  const names = tls?.subjectAltNames?.map(({ type, value }) => [type, value])
  return createHash('sha256')
    .update(JSON.stringify([...parts, names, tls !== undefined]))
    .digest('hex')
}

/**
 * Fetches the wanted key sets at once and then every `cacheDuration`; after a failure 200 ms later, doubling to 15 s. At most ten
 * fetches run at a time.
 */
export const createKeySetStore = (options: StoreOptions): KeySetStore => new FetchingStore(options)

class FetchingStore implements KeySetStore {
  readonly #options: StoreOptions
  readonly #sources = new Map<string, Source>()
  readonly #queue: Source[] = []
  readonly #change: ReturnType<typeof debounce>
  #keyById: ReadonlyMap<string, string> = new Map()
  #running = 0

  constructor(options: StoreOptions) {
    this.#options = options
    this.#change = debounce(options.onChange, CHANGE_TIMES, options.clock)
  }

  want(requests: readonly KeySetRequest[]): boolean {
    const before = this.current()
    this.#keyById = new Map(requests.map((request) => [request.id, sourceKey(request)]))
    const wanted = this.#requestsByKey(requests)
    for (const [key, source] of this.#sources) {
      if (wanted.has(key)) continue
      drop(source)
      this.#sources.delete(key)
      this.#options.memory?.forget(key)
    }
    for (const [key, request] of wanted) {
      const known = this.#sources.get(key)
      if (known) this.#update(known, request)
      else this.#add(key, request)
    }
    const after = this.current()
    return after.size !== before.size || [...after].some(([id, text]) => before.get(id) !== text)
  }

  current(): ReadonlyMap<string, string> {
    return this.#collect(({ text }) => text)
  }

  errors(): ReadonlyMap<string, string> {
    return this.#collect(({ text, reportedError }) => (text === undefined ? reportedError : undefined))
  }

  close(): void {
    this.#change.cancel()
    for (const source of this.#sources.values()) drop(source)
    this.#sources.clear()
  }

  #collect(read: (source: Source) => string | undefined): ReadonlyMap<string, string> {
    return new Map(
      [...this.#keyById].flatMap(([id, key]) => {
        const source = this.#sources.get(key)
        const value = source && read(source)
        return value === undefined ? [] : [[id, value] as const]
      }),
    )
  }

  /** Of several requests for one source, the one with the shortest `cacheDuration`. */
  #requestsByKey(requests: readonly KeySetRequest[]): Map<string, KeySetRequest> {
    const wanted = new Map<string, KeySetRequest>()
    for (const request of requests) {
      const key = this.#keyById.get(request.id) ?? ''
      const rival = wanted.get(key)
      wanted.set(key, rival && rival.cacheMs < request.cacheMs ? rival : request)
    }
    return wanted
  }

  #add(key: string, request: KeySetRequest): void {
    const text = this.#recall(key)
    const source: Source = {
      key,
      request,
      ...(text !== undefined && { text }),
      failures: 0,
      isQueued: false,
      cancelTimer: () => {},
      abort: new AbortController(),
    }
    this.#sources.set(key, source)
    this.#enqueue(source)
  }

  /** The request of a known source may differ in endpoints and `cacheDuration`. */
  #update(source: Source, request: KeySetRequest): void {
    const before = source.request
    source.request = request
    if (source.isQueued) return
    if (source.failures > 0) {
      if (JSON.stringify(before.endpoints) !== JSON.stringify(request.endpoints)) this.#enqueue(source)
    } else if (before.cacheMs !== request.cacheMs) this.#scheduleRefresh(source)
  }

  #recall(key: string): string | undefined {
    try {
      const text = this.#options.memory?.recall(key)
      return text === undefined ? undefined : readKeySet(text)
    } catch {
      // The stored text is not a key set, so another program wrote it. The fetch that follows replaces it.
      return undefined
    }
  }

  #enqueue(source: Source): void {
    source.cancelTimer()
    if (source.isQueued || source.abort.signal.aborted) return
    source.isQueued = true
    this.#queue.push(source)
    this.#runNext()
  }

  #runNext(): void {
    while (this.#running < MAX_PARALLEL) {
      const source = this.#queue.shift()
      if (!source) return
      if (source.abort.signal.aborted) continue
      this.#running += 1
      this.#options
        .fetch(source.request, source.failures, source.abort.signal)
        .then(
          (text) => this.#succeed(source, text),
          (error: unknown) => this.#fail(source, error),
        )
        .finally(() => {
          this.#running -= 1
          this.#runNext()
        })
    }
  }

  #schedule(source: Source, delayMs: number): void {
    source.cancelTimer()
    source.cancelTimer = this.#options.clock.after(delayMs, () => this.#enqueue(source))
  }

  #scheduleRefresh(source: Source): void {
    const cacheMs = Math.min(Math.max(source.request.cacheMs, MIN_CACHE_MS), MAX_CACHE_MS)
    this.#schedule(source, Math.max((source.fetchedAt ?? 0) + cacheMs - this.#options.clock.now(), 0))
  }

  #succeed(source: Source, text: string): void {
    source.isQueued = false
    if (source.abort.signal.aborted) return
    source.failures = 0
    delete source.reportedError
    source.fetchedAt = this.#options.clock.now()
    this.#scheduleRefresh(source)
    if (source.text === text) return
    source.text = text
    this.#options.memory?.keep(source.key, text)
    this.#change.schedule()
  }

  #fail(source: Source, error: unknown): void {
    source.isQueued = false
    if (source.abort.signal.aborted) return
    this.#schedule(source, Math.min(FIRST_RETRY_MS * 2 ** Math.min(source.failures, 10), MAX_RETRY_MS))
    source.failures += 1
    const message = error instanceof Error ? error.message : String(error)
    if (message === source.reportedError) return
    source.reportedError = message
    // Without a key set, the statuses of its policies name the error.
    if (source.text === undefined) this.#change.schedule()
    this.#options.onError(describeSource(source.request), error)
  }
}

function drop(source: Source): void {
  source.cancelTimer()
  source.abort.abort()
}
