import type { Clock } from '../serve/debounce.ts'
import { ApiError, type KubeConnection } from './connection.ts'
import type { RawObject } from './normalize.ts'

export interface CollectionWatchOptions {
  readonly connection: KubeConnection
  /** Paths that the collection may have; the first that is served is used. None served: the kind is not installed. */
  readonly paths: readonly string[]
  /** Added to every query, for example a fieldSelector. */
  readonly query?: Readonly<Record<string, string>>
  /** The whole collection, after a list. `path` is where it is served. An empty one when the kind is not installed. */
  readonly onList: (items: readonly RawObject[], path: string | undefined) => void
  readonly onUpsert: (item: RawObject) => void
  readonly onDelete: (item: RawObject) => void
  /** A failure that will be retried. */
  readonly onError: (error: unknown) => void
  readonly clock: Clock
  /** First and longest wait after failures; default 100 ms and 30 s. */
  readonly backoff?: { readonly firstMs: number; readonly maxMs: number }
  /** How often a kind that is not installed is looked for; default 5 s. */
  readonly absentPollMs?: number
}

const PAGE = 500
/** The server ends a watch after this; a connection that died silently is noticed a little later. */
const WATCH_SECONDS = 290

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: RawObject & { readonly code?: number; readonly message?: string; readonly reason?: string }
}

/** Lists a collection and follows its changes until closed: resumes from the last version seen, and lists anew when that is too old. */
export function watchCollection(options: CollectionWatchOptions): { close(): void } {
  const { connection, paths, clock, onError } = options
  const { firstMs, maxMs } = options.backoff ?? { firstMs: 100, maxMs: 30_000 }
  const abort = new AbortController()
  let path: string | undefined
  let version: string | undefined
  let failures = 0

  const isClosed = (): boolean => abort.signal.aborted
  const sleep = (delayMs: number): Promise<void> =>
    new Promise((resolve) => {
      const wake = (): void => {
        cancel()
        abort.signal.removeEventListener('abort', wake)
        resolve()
      }
      const cancel = clock.after(delayMs, wake)
      abort.signal.addEventListener('abort', wake)
    })
  const queryOf = (more: Readonly<Record<string, string>>): string => new URLSearchParams({ ...options.query, ...more }).toString()

  const list = async (): Promise<void> => {
    path = undefined
    for (const candidate of paths) {
      try {
        const { items, resourceVersion } = await listPages(connection, (token) => `${candidate}?${queryOf({ limit: String(PAGE), ...token })}`)
        if (isClosed()) return
        path = candidate
        version = resourceVersion
        options.onList(items, candidate)
        return
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 404) throw error
      }
    }
    if (isClosed()) return
    failures = 0
    options.onList([], undefined)
    await sleep(options.absentPollMs ?? 5_000)
  }

  const receive = (line: string): void => {
    const { type, object } = JSON.parse(line) as WatchEvent
    if (type === 'ERROR') throw new ApiError(object.code ?? 500, object.reason ?? '', `watch ${path}: ${object.message ?? 'failed'}`)
    failures = 0
    version = object.metadata.resourceVersion ?? version
    if (type === 'DELETED') options.onDelete(object)
    else if (type !== 'BOOKMARK') options.onUpsert(object)
  }

  const follow = async (): Promise<void> => {
    const query = queryOf({ watch: '1', allowWatchBookmarks: 'true', resourceVersion: version ?? '', timeoutSeconds: String(WATCH_SECONDS) })
    const deadline = AbortSignal.any([abort.signal, AbortSignal.timeout((WATCH_SECONDS + 20) * 1000)])
    const started = clock.now()
    await connection.stream(`${path}?${query}`, receive, deadline)
    failures = 0
    // Without this pause, a server that ends every watch at once would be called in a tight loop.
    if (clock.now() - started < 1000 && !isClosed()) await sleep(firstMs)
  }

  const run = async (): Promise<void> => {
    while (!isClosed()) {
      try {
        if (version === undefined) await list()
        else await follow()
      } catch (error) {
        if (isClosed()) return
        if (error instanceof ApiError && (error.status === 410 || error.status === 404)) {
          // Too old to resume from, or the kind is gone.
          version = undefined
        } else onError(error)
        failures += 1
        // Half of it is random, so that replicas and kinds do not reconnect together.
        const delay = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 16))
        await sleep(delay / 2 + (Math.random() * delay) / 2)
      }
    }
  }
  void run()
  return { close: () => abort.abort() }
}

interface Page {
  readonly items?: readonly RawObject[] | null
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string }
}

async function listPages(
  connection: KubeConnection,
  pathOf: (token: Readonly<Record<string, string>>) => string,
): Promise<{ items: RawObject[]; resourceVersion: string }> {
  const items: RawObject[] = []
  let token = ''
  for (;;) {
    const page: Page = await connection.request('GET', pathOf(token === '' ? {} : { continue: token }))
    for (const item of page.items ?? []) items.push(item)
    token = page.metadata?.continue ?? ''
    if (token === '') return { items, resourceVersion: page.metadata?.resourceVersion ?? '' }
  }
}
