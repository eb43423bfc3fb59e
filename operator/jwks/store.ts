import { createHash } from 'node:crypto'
import { debounce, type Clock } from '../serve/debounce.ts'
import type { KeySetRequest } from '../model/translation.ts'
import { describeSource, type FetchKeySet } from './fetch.ts'
import { readKeySet } from './key-set.ts'

export interface StoreOptions {
  readonly fetch: FetchKeySet
  readonly clock: Clock
  /** Key sets arrived or changed, or one that is not there cannot be fetched; called once for those that come together. */
  readonly onChange: () => void
  /** A fetch failed; told once until one succeeds or the reason changes. */
  readonly onError: (url: string, error: unknown) => void
  readonly memory?: KeySetMemory
}

/** Keeps key sets across restarts. A source is 64 hex digits, which tell its URL and TLS settings from all others. */
export interface KeySetMemory {
  /** What was kept; it is given out until the first fetch ends, and stays when that fails. */
  recall(source: string): string | undefined
  /** A key set arrived or changed. */
  keep(source: string, text: string): void
  /** Nobody wants it any more. Not called on close. */
  forget(source: string): void
}

export interface KeySetStore {
  /** Fetches these from now on, and no others. True when `current` became other by it. */
  want(requests: readonly KeySetRequest[]): boolean
  /** What has been fetched, by id. A failed refresh changes nothing. */
  current(): ReadonlyMap<string, string>
  /** Why those that are not there could not be fetched, by id. */
  errors(): ReadonlyMap<string, string>
  close(): void
}

const MAX_PARALLEL = 10
const FIRST_RETRY_MS = 200
const MAX_RETRY_MS = 15_000
/** Directory mode does not check the API's lower bound of cacheDuration; timers overflow above the upper one. */
const MIN_CACHE_MS = 1000
const MAX_CACHE_MS = 86_400_000
/** Key sets that arrive together are translated together. */
const CHANGE_TIMES = { quietMs: 10, maxMs: 100 }

/** One distinct URL and TLS settings. */
interface Source {
  readonly key: string
  request: KeySetRequest
  text?: string
  /** Since the last success. */
  failures: number
  toldError?: string
  /** When the last good answer came. */
  fetchedAt?: number
  isQueued: boolean
  cancelTimer: () => void
  readonly abort: AbortController
}

/** What tells two sources apart. Where endpoints are given, they may change; that they are given makes a difference, too. */
function sourceKey({ url, tls, endpoints }: KeySetRequest): string {
  const parts = [url.host, url.port, url.path, endpoints !== undefined, tls?.servername, tls?.verify, tls?.ca, tls?.certificate, tls?.privateKey]
  const names = tls?.subjectAltNames?.map(({ type, value }) => [type, value])
  return createHash('sha256')
    .update(JSON.stringify([...parts, names, tls !== undefined]))
    .digest('hex')
}

/** Keeps the key sets that are wanted: fetched at once, then at cacheDuration; after a failure 200 ms later, doubling to 15 s. */
export function createKeySetStore({ fetch, clock, onChange, onError, memory }: StoreOptions): KeySetStore {
  const sources = new Map<string, Source>()
  let keyById: ReadonlyMap<string, string> = new Map()
  const queue: Source[] = []
  let running = 0
  const change = debounce(onChange, CHANGE_TIMES, clock)

  const enqueue = (source: Source): void => {
    source.cancelTimer()
    if (source.isQueued || source.abort.signal.aborted) return
    source.isQueued = true
    queue.push(source)
    runNext()
  }
  const runNext = (): void => {
    while (running < MAX_PARALLEL) {
      const source = queue.shift()
      if (!source) return
      if (source.abort.signal.aborted) continue
      running += 1
      fetch(source.request, source.failures, source.abort.signal)
        .then(
          (text) => succeed(source, text),
          (error: unknown) => fail(source, error),
        )
        .finally(() => {
          running -= 1
          runNext()
        })
    }
  }
  const schedule = (source: Source, delayMs: number): void => {
    source.cancelTimer()
    source.cancelTimer = clock.after(delayMs, () => enqueue(source))
  }
  const scheduleRefresh = (source: Source): void => {
    const cacheMs = Math.min(Math.max(source.request.cacheMs, MIN_CACHE_MS), MAX_CACHE_MS)
    schedule(source, Math.max((source.fetchedAt ?? 0) + cacheMs - clock.now(), 0))
  }
  const succeed = (source: Source, text: string): void => {
    source.isQueued = false
    if (source.abort.signal.aborted) return
    source.failures = 0
    delete source.toldError
    source.fetchedAt = clock.now()
    scheduleRefresh(source)
    if (source.text === text) return
    source.text = text
    memory?.keep(source.key, text)
    change.ask()
  }
  const fail = (source: Source, error: unknown): void => {
    source.isQueued = false
    if (source.abort.signal.aborted) return
    schedule(source, Math.min(FIRST_RETRY_MS * 2 ** Math.min(source.failures, 10), MAX_RETRY_MS))
    source.failures += 1
    const message = error instanceof Error ? error.message : String(error)
    if (message === source.toldError) return
    source.toldError = message
    // Until there is a key set its policies' statuses say why.
    if (source.text === undefined) change.ask()
    onError(describeSource(source.request), error)
  }
  const recall = (key: string): string | undefined => {
    try {
      const text = memory?.recall(key)
      return text === undefined ? undefined : readKeySet(text)
    } catch {
      // Somebody else wrote there; the fetch that follows puts it right.
      return undefined
    }
  }
  const drop = (source: Source): void => {
    source.cancelTimer()
    source.abort.abort()
  }

  const current = (): ReadonlyMap<string, string> =>
    new Map(
      [...keyById].flatMap(([id, key]) => {
        const text = sources.get(key)?.text
        return text === undefined ? [] : [[id, text] as const]
      }),
    )

  const errors = (): ReadonlyMap<string, string> =>
    new Map(
      [...keyById].flatMap(([id, key]) => {
        const source = sources.get(key)
        return source?.toldError === undefined || source.text !== undefined ? [] : [[id, source.toldError] as const]
      }),
    )

  /** The request of a source may differ in endpoints and cacheDuration. */
  const update = (source: Source, request: KeySetRequest): void => {
    const before = source.request
    source.request = request
    if (source.isQueued) return
    if (source.failures > 0) {
      if (JSON.stringify(before.endpoints) !== JSON.stringify(request.endpoints)) enqueue(source)
    } else if (before.cacheMs !== request.cacheMs) scheduleRefresh(source)
  }

  return {
    current,
    errors,
    want(requests) {
      const before = current()
      const wanted = new Map<string, KeySetRequest>()
      keyById = new Map(requests.map((request) => [request.id, sourceKey(request)]))
      for (const request of requests) {
        const key = keyById.get(request.id) ?? ''
        const rival = wanted.get(key)
        wanted.set(key, rival && rival.cacheMs < request.cacheMs ? rival : request)
      }
      for (const [key, source] of sources) {
        if (wanted.has(key)) continue
        drop(source)
        sources.delete(key)
        memory?.forget(key)
      }
      for (const [key, request] of wanted) {
        const known = sources.get(key)
        if (known) update(known, request)
        else {
          const text = recall(key)
          const source: Source = {
            key,
            request,
            ...(text !== undefined && { text }),
            failures: 0,
            isQueued: false,
            cancelTimer: () => {},
            abort: new AbortController(),
          }
          sources.set(key, source)
          enqueue(source)
        }
      }
      const after = current()
      return after.size !== before.size || [...after].some(([id, text]) => before.get(id) !== text)
    },
    close() {
      change.cancel()
      for (const source of sources.values()) drop(source)
      sources.clear()
    },
  }
}
