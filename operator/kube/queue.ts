import type { Clock } from '../serve/debounce.ts'

export interface QueueOptions {
  /** Works on one key at a time per key. A rejection is retried after a growing pause. */
  readonly work: (key: string) => Promise<void>
  readonly concurrency: number
  /** Shortest time between two starts for one key. */
  readonly intervalMs: number
  readonly backoff: { readonly firstMs: number; readonly maxMs: number }
  readonly onError: (key: string, error: unknown) => void
  readonly clock: Clock
}

/** A keyed work queue: a key that is added while it waits counts once; one that is added while it is worked on is worked on again. */
export interface Queue {
  add(key: string): void
  /** As `add`, for a key whose input changed: a failed key is tried at once, without the rest of its backoff. */
  renew(key: string): void
  /** Removes all waiting keys; running work completes. */
  clear(): void
  /** Number of keys that wait or are worked on. */
  size(): number
}

interface Entry {
  state: 'waiting' | 'ready' | 'running' | 'idle'
  isDirty: boolean
  failures: number
  startedAt: number
  cancelTimer: () => void
}

export function createQueue(options: QueueOptions): Queue {
  const { clock, intervalMs, backoff } = options
  const entries = new Map<string, Entry>()
  const ready: string[] = []
  let running = 0

  const schedule = (key: string, entry: Entry, delayMs: number): void => {
    entry.cancelTimer()
    if (delayMs <= 0) {
      makeReady(key, entry)
      return
    }
    entry.state = 'waiting'
    entry.cancelTimer = clock.after(delayMs, () => makeReady(key, entry))
  }
  const makeReady = (key: string, entry: Entry): void => {
    entry.state = 'ready'
    ready.push(key)
    drain()
  }
  const drain = (): void => {
    while (running < options.concurrency) {
      const key = ready.shift()
      if (key === undefined) return
      const entry = entries.get(key)
      if (entry?.state === 'ready') void start(key, entry)
    }
  }
  const start = async (key: string, entry: Entry): Promise<void> => {
    running += 1
    entry.state = 'running'
    entry.isDirty = false
    entry.startedAt = clock.now()
    try {
      await options.work(key)
      entry.failures = 0
    } catch (error) {
      entry.failures += 1
      options.onError(key, error)
    }
    running -= 1
    if (entries.get(key) === entry) finish(key, entry)
    drain()
  }
  const finish = (key: string, entry: Entry): void => {
    const rest = entry.startedAt + intervalMs - clock.now()
    const pause = entry.failures === 0 ? 0 : Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.min(entry.failures - 1, 16))
    if (entry.isDirty || entry.failures > 0) schedule(key, entry, Math.max(rest, pause))
    else {
      // Kept for a while so that the next start keeps its distance.
      entry.state = 'idle'
      entry.cancelTimer = clock.after(Math.max(rest, 0), () => entries.delete(key))
    }
  }

  const add = (key: string): void => {
    const entry = entries.get(key)
    if (!entry) {
      const fresh: Entry = { state: 'idle', isDirty: false, failures: 0, startedAt: -Infinity, cancelTimer: () => {} }
      entries.set(key, fresh)
      schedule(key, fresh, 0)
    } else if (entry.state === 'running') entry.isDirty = true
    else if (entry.state === 'idle') schedule(key, entry, entry.startedAt + intervalMs - clock.now())
  }

  return {
    add,
    renew(key) {
      const entry = entries.get(key)
      if (entry?.state === 'waiting' && entry.failures > 0) {
        entry.failures = 0
        schedule(key, entry, entry.startedAt + intervalMs - clock.now())
      } else add(key)
    },
    clear() {
      for (const entry of entries.values()) entry.cancelTimer()
      entries.clear()
      ready.length = 0
    },
    size: () => [...entries.values()].filter(({ state }) => state !== 'idle').length,
  }
}
