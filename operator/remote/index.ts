import type { Translation } from '../model/translation.ts'
import { systemClock, type Clock } from '../serve/debounce.ts'
import type { Snapshot } from '../source/snapshot.ts'
import type { TranslateOptions } from '../translate/common/context.ts'
import { createTranslator } from '../translate/translator.ts'
import { createDocumentFetch, createDocumentMemory, type FetchedDocument } from './document.ts'
import { createKeySetFetch, createKeySetMemory } from './key-set.ts'
import { createPluginImageFetch } from './plugin-image.ts'
import type { RegistryFiles } from './registry-access.ts'
import { createRemoteStore, type Fetch, type Memory, type StoreOptions } from './store.ts'

/** Bytes of all documents. */
const MAX_TOTAL_BYTES = 128 * 1024 * 1024

/** Characters of all sources of plugins. */
const MAX_TOTAL_SOURCE = 64 * 1024 * 1024

interface KindOptions<V> extends Pick<StoreOptions<V>, 'onError'> {
  /** Default: none; a restart fetches anew. */
  readonly memory?: Memory<string>
  /** Default: HTTP. */
  readonly fetch?: Fetch<V>
}

export interface RemotesOptions {
  /** Loopback is refused in a cluster: there it is the operator itself. */
  readonly isLoopbackAllowed: boolean
  /** Key sets or documents arrived or changed: translate the latest snapshot again, and publish. */
  readonly onChange: () => void
  readonly keySets: KindOptions<string>
  readonly documents: KindOptions<FetchedDocument>
  readonly pluginImages: KindOptions<string> & { readonly files?: RegistryFiles }
  /** Default: the system's clock. */
  readonly clock?: Clock
}

export interface Remotes {
  /** `translate` with the key sets and documents that are available; those that are missing are fetched. */
  translate(
    snapshot: Snapshot,
    options: Omit<TranslateOptions, 'keySets' | 'keySetErrors' | 'documents' | 'documentErrors' | 'pluginImages' | 'pluginImageErrors'>,
  ): Translation
  /** Fetches of documents since the start, and documents whose last fetch failed. */
  documentStats(): { readonly successes: number; readonly failures: number; readonly failing: number }
  /** Stops fetching. */
  close(): void
}

/** The remote key sets of policies (traffic.md §8.3, mcp.md §8.6) and OpenAPI documents of backends (mcp.md §2.1), fetched and kept fresh. */
export function createRemotes({ isLoopbackAllowed, clock = systemClock, onChange, keySets, documents, pluginImages }: RemotesOptions): Remotes {
  const counts = { successes: 0, failures: 0 }
  const keySetStore = createRemoteStore<string>({
    clock,
    onChange,
    onError: keySets.onError,
    fetch: keySets.fetch ?? createKeySetFetch({ isLoopbackAllowed }),
    ...(keySets.memory && { memory: createKeySetMemory(keySets.memory) }),
  })
  const fetchDocument = documents.fetch ?? createDocumentFetch({ isLoopbackAllowed })
  const documentStore = createRemoteStore<FetchedDocument>({
    clock,
    onChange,
    onError: documents.onError,
    onFetch: (isSuccessful) => (counts[isSuccessful ? 'successes' : 'failures'] += 1),
    async fetch(source, attempt, signal, previous) {
      const document = await fetchDocument(source, attempt, signal, previous)
      const others = new Set([...documentStore.current().values()].filter((each) => each !== previous && each !== document))
      const total = others.values().reduce((sum, { bytes }) => sum + bytes.length, document.bytes.length)
      if (total > MAX_TOTAL_BYTES) throw new Error(`the documents of all backends exceed ${MAX_TOTAL_BYTES / 1024 / 1024} MiB`)
      return document
    },
    ...(documents.memory && { memory: createDocumentMemory(documents.memory) }),
  })
  const fetchImage = pluginImages.fetch ?? createPluginImageFetch({ isLoopbackAllowed, ...(pluginImages.files && { files: pluginImages.files }) })
  const imageStore = createRemoteStore<string>({
    clock,
    onChange,
    onError: pluginImages.onError,
    async fetch(source, attempt, signal, previous) {
      const code = await fetchImage(source, attempt, signal, previous)
      const total = new Set([...imageStore.current().values(), code]).values().reduce((sum, { length }) => sum + length, 0)
      if (total > MAX_TOTAL_SOURCE) throw new Error(`the sources of all plugins exceed ${MAX_TOTAL_SOURCE / 1024 / 1024} MiB`)
      return code
    },
    ...(pluginImages.memory && { memory: pluginImages.memory }),
  })
  const translate = createTranslator()
  return {
    translate(snapshot, settings) {
      const run = (): Translation =>
        translate(snapshot, {
          ...settings,
          keySets: keySetStore.current(),
          keySetErrors: keySetStore.errors(),
          documents: documentStore.current(),
          documentErrors: documentStore.errors(),
          pluginImages: imageStore.current(),
          pluginImageErrors: imageStore.errors(),
        })
      const first = run()
      // An id whose URL or TLS settings changed must not keep the value of before.
      const isChanged = [keySetStore.want(first.keySets ?? []), documentStore.want(first.documents ?? []), imageStore.want(first.pluginImages ?? [])].includes(
        true,
      )
      return isChanged ? run() : first
    },
    documentStats: () => ({ ...counts, failing: documentStore.failing() }),
    close() {
      keySetStore.close()
      documentStore.close()
      imageStore.close()
    },
  }
}
