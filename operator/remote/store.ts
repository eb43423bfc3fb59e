import { createHash } from 'node:crypto'
import { debounce, type Clock } from '../serve/debounce.ts'
import type { RemoteRequest } from '../model/translation.ts'
import { describeForStatus } from './address.ts'
import { describeSource } from './fetch.ts'

/**
 * Fetches a value. `attempt` counts failures from 0 and picks among endpoints. `previous` is returned if the value did not change. Rejects with the
 * cause.
 */
export type Fetch<V> = (source: RemoteRequest, attempt: number, signal: AbortSignal, previous?: V) => Promise<V>

export interface StoreOptions<V> {
  readonly fetch: Fetch<V>
  readonly clock: Clock
  /** `current` or `errors` changed; called once for changes that happen together. */
  readonly onChange: () => void
  /** A fetch failed; called once until a fetch succeeds or the reason changes. */
  readonly onError: (url: string, error: unknown) => void
  /** A fetch ended. */
  readonly onFetch?: (isSuccessful: boolean) => void
  readonly memory?: Memory<V>
}

/** Keeps values across restarts. A source is named by the SHA-256 of its URL and TLS settings, in hexadecimal. */
export interface Memory<V> {
  /** The stored value, which is in force until the first fetch succeeds. Throws if another program stored something else. */
  recall(source: string): V | undefined
  /** Stores a value that was fetched for the first time or changed. */
  keep(source: string, value: V): void
  /** Deletes a value that is no longer wanted. Not called on close. */
  forget(source: string): void
}

export interface RemoteStore<V> {
  /** Fetches these from now on, and no others. Returns true if that changed `current`. */
  want(requests: readonly RemoteRequest[]): boolean
  /** Values that have been fetched, by id. A failed refresh changes nothing. */
  current(): ReadonlyMap<string, V>
  /** Last errors for statuses, by id, of sources without a value, and of those whose value is from before at least `OUTAGE_FAILURES` failures. */
  errors(): ReadonlyMap<string, string>
  /** Number of sources whose last fetch failed. */
  failing(): number
  close(): void
}

const MAX_PARALLEL = 10
const FIRST_RETRY_MS = 200
const MAX_RETRY_MS = 15_000
/** Failures in a row, 25 s, after which statuses name the outage of a source that has a value. Shorter outages change no status. */
const OUTAGE_FAILURES = 8
/** Directory mode does not check the API's lower bound of cacheDuration; timers overflow above the upper one. */
const MIN_CACHE_MS = 1000
const MAX_CACHE_MS = 86_400_000
/** Values that are fetched together are translated together. */
const CHANGE_TIMES = { quietMs: 10, maxMs: 100 }

/** One distinct URL and TLS settings. */
interface Source<V> {
  readonly key: string
  request: RemoteRequest
  value?: V
  /** Number of failures since the last success. */
  failures: number
  /** What statuses show. */
  reportedError?: string
  loggedError?: string
  /** Time of the last successful fetch. */
  fetchedAt?: number
  isQueued: boolean
  cancelTimer: () => void
  readonly abort: AbortController
}

/** Identity of a source. Whether endpoints are given is part of it; which ones is not, because they may change. */
function sourceKey({ url, tls, endpoints }: RemoteRequest): string {
  const parts = [url.host, url.port, url.path, endpoints !== undefined, tls?.servername, tls?.verify, tls?.ca, tls?.certificate, tls?.privateKey]
  const names = tls?.subjectAltNames?.map(({ type, value }) => [type, value])
  return createHash('sha256')
    .update(JSON.stringify([...parts, names, tls !== undefined]))
    .digest('hex')
}

/**
 * Fetches what is wanted at once and then every `cacheMs`; after a failure 200 ms later, doubling to 15 s. At most ten fetches run at
 * a time.
 */
export const createRemoteStore = <V>(options: StoreOptions<V>): RemoteStore<V> => new FetchingStore(options)

class FetchingStore<V> implements RemoteStore<V> {
  readonly #options: StoreOptions<V>
  readonly #sources = new Map<string, Source<V>>()
  readonly #queue: Source<V>[] = []
  readonly #change: ReturnType<typeof debounce>
  #keyById: ReadonlyMap<string, string> = new Map()
  #running = 0

  constructor(options: StoreOptions<V>) {
    this.#options = options
    this.#change = debounce(options.onChange, CHANGE_TIMES, options.clock)
  }

  want(requests: readonly RemoteRequest[]): boolean {
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
    return after.size !== before.size || [...after].some(([id, value]) => before.get(id) !== value)
  }

  current(): ReadonlyMap<string, V> {
    return this.#collect(({ value }) => value)
  }

  errors(): ReadonlyMap<string, string> {
    return this.#collect((source) => (isErrorShown(source) ? source.reportedError : undefined))
  }

  failing(): number {
    return this.#sources.values().reduce((count, { failures }) => count + (failures > 0 ? 1 : 0), 0)
  }

  close(): void {
    this.#change.cancel()
    for (const source of this.#sources.values()) drop(source)
    this.#sources.clear()
  }

  #collect<R>(read: (source: Source<V>) => R | undefined): ReadonlyMap<string, R> {
    return new Map(
      [...this.#keyById].flatMap(([id, key]) => {
        const source = this.#sources.get(key)
        const value = source && read(source)
        return value === undefined ? [] : [[id, value] as const]
      }),
    )
  }

  /** Of several requests for one source, the one with the shortest `cacheDuration`. */
  #requestsByKey(requests: readonly RemoteRequest[]): Map<string, RemoteRequest> {
    const wanted = new Map<string, RemoteRequest>()
    for (const request of requests) {
      const key = this.#keyById.get(request.id) ?? ''
      const rival = wanted.get(key)
      wanted.set(key, rival && rival.cacheMs < request.cacheMs ? rival : request)
    }
    return wanted
  }

  #add(key: string, request: RemoteRequest): void {
    const value = this.#recall(key)
    const source: Source<V> = {
      key,
      request,
      ...(value !== undefined && { value }),
      failures: 0,
      isQueued: false,
      cancelTimer: () => {},
      abort: new AbortController(),
    }
    this.#sources.set(key, source)
    this.#enqueue(source)
  }

  /** The request of a known source may differ in endpoints and `cacheDuration`. */
  #update(source: Source<V>, request: RemoteRequest): void {
    const before = source.request
    source.request = request
    if (source.isQueued) return
    if (source.failures > 0) {
      if (JSON.stringify(before.endpoints) !== JSON.stringify(request.endpoints)) this.#enqueue(source)
    } else if (before.cacheMs !== request.cacheMs) this.#scheduleRefresh(source)
  }

  #recall(key: string): V | undefined {
    try {
      return this.#options.memory?.recall(key)
    } catch {
      // Another program wrote it. The fetch that follows replaces it.
      return undefined
    }
  }

  #enqueue(source: Source<V>): void {
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
        .fetch(source.request, source.failures, source.abort.signal, source.value)
        .then(
          (value) => this.#succeed(source, value),
          (error: unknown) => this.#fail(source, error),
        )
        .finally(() => {
          this.#running -= 1
          this.#runNext()
        })
    }
  }

  #schedule(source: Source<V>, delayMs: number): void {
    source.cancelTimer()
    source.cancelTimer = this.#options.clock.after(delayMs, () => this.#enqueue(source))
  }

  #scheduleRefresh(source: Source<V>): void {
    const cacheMs = Math.min(Math.max(source.request.cacheMs, MIN_CACHE_MS), MAX_CACHE_MS)
    this.#schedule(source, Math.max((source.fetchedAt ?? 0) + cacheMs - this.#options.clock.now(), 0))
  }

  #succeed(source: Source<V>, value: V): void {
    source.isQueued = false
    if (source.abort.signal.aborted) return
    this.#options.onFetch?.(true)
    if (isErrorShown(source)) this.#change.schedule()
    source.failures = 0
    delete source.reportedError
    delete source.loggedError
    source.fetchedAt = this.#options.clock.now()
    this.#scheduleRefresh(source)
    if (source.value === value) return
    source.value = value
    this.#options.memory?.keep(source.key, value)
    this.#change.schedule()
  }

  #fail(source: Source<V>, error: unknown): void {
    source.isQueued = false
    if (source.abort.signal.aborted) return
    this.#options.onFetch?.(false)
    this.#schedule(source, Math.min(FIRST_RETRY_MS * 2 ** Math.min(source.failures, 10), MAX_RETRY_MS))
    source.failures += 1
    if (source.failures === OUTAGE_FAILURES && source.value !== undefined) this.#change.schedule()
    const reported = describeForStatus(error)
    if (reported !== source.reportedError) {
      source.reportedError = reported
      if (isErrorShown(source)) this.#change.schedule()
    }
    const message = error instanceof Error ? error.message : String(error)
    if (message === source.loggedError) return
    source.loggedError = message
    this.#options.onError(describeSource(source.request), error)
  }
}

const isErrorShown = <V>({ value, failures }: Source<V>): boolean => value === undefined || failures >= OUTAGE_FAILURES

function drop(source: Source<unknown>): void {
  source.cancelTimer()
  source.abort.abort()
}
