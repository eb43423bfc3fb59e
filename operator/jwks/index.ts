import { systemClock, type Clock } from '../serve/debounce.ts'
import type { Snapshot } from '../source/snapshot.ts'
import type { TranslateOptions } from '../translate/common/context.ts'
import { createTranslator } from '../translate/translator.ts'
import type { Translation } from '../model/translation.ts'
import { createFetch, type FetchKeySet } from './fetch.ts'
import { createKeySetStore, type KeySetMemory } from './store.ts'

export interface KeySetsOptions {
  /** Loopback is refused in a cluster: there it is the operator itself. */
  readonly isLoopbackAllowed: boolean
  /** Key sets arrived or changed: translate the latest snapshot again, and publish. */
  readonly onChange: () => void
  /** A fetch failed; the last fetched key set stays in force. */
  readonly onError: (url: string, error: unknown) => void
  /** Default: none; a restart fetches anew. */
  readonly memory?: KeySetMemory
  /** Defaults: the system's clock, and HTTP. */
  readonly clock?: Clock
  readonly fetch?: FetchKeySet
}

export interface KeySets {
  /** `translate` with the key sets that are there; those that it lacks are fetched. */
  translate(snapshot: Snapshot, options: Omit<TranslateOptions, 'keySets' | 'keySetErrors'>): Translation
  /** Stops fetching. */
  close(): void
}

/** The remote key sets of policies, fetched and kept fresh (traffic.md §8.3, mcp.md §8.6). */
export function createKeySets({ isLoopbackAllowed, clock = systemClock, fetch = createFetch({ isLoopbackAllowed }), ...options }: KeySetsOptions): KeySets {
  const store = createKeySetStore({ ...options, clock, fetch })
  const translate = createTranslator()
  return {
    translate(snapshot, settings) {
      const run = (): Translation => translate(snapshot, { ...settings, keySets: store.current(), keySetErrors: store.errors() })
      const first = run()
      // An id whose URL or TLS settings became others must not go on with the keys of before.
      return store.want(first.keySets ?? []) ? run() : first
    },
    close: () => store.close(),
  }
}
