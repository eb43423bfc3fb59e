import { createGet, type FetchOptions } from './fetch.ts'
import type { Fetch, Memory } from './store.ts'

/** Fetches key sets as normalized texts: within 5 s to connect and 10 s altogether, and up to 1 MiB. */
export function createKeySetFetch({ isLoopbackAllowed, times = { dialMs: 5000, totalMs: 10_000 }, maxBytes = 1 << 20 }: FetchOptions): Fetch<string> {
  const get = createGet({ isLoopbackAllowed, times, maxBytes })
  return async (source, attempt, signal) => {
    const { bytes } = await get(source, attempt, signal, { accept: 'application/jwk-set+json, application/json' })
    return readKeySet(bytes.toString('utf8'))
  }
}

/** Stores key sets in a memory of texts. */
export const createKeySetMemory = (texts: Memory<string>): Memory<string> => ({
  recall(source) {
    const text = texts.recall(source)
    return text === undefined ? undefined : readKeySet(text)
  },
  keep: (source, text) => texts.keep(source, text),
  forget: (source) => texts.forget(source),
})

/**
 * Reads a JSON Web Key Set (RFC 7517 §5) and returns it in a normalized form, so that white space and unknown members make no difference.
 * Throws if the text is not a key set. Keys are not judged here: one that cannot be used must not keep the others away, and an empty set is valid, its owner
 * has withdrawn all keys.
 */
function readKeySet(text: string): string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error('the answer is not JSON')
  }
  const keys: unknown = typeof value === 'object' && value !== null && 'keys' in value ? value.keys : undefined
  if (!Array.isArray(keys)) throw new Error('the answer is not a JSON Web Key Set: it needs "keys", a list')
  return JSON.stringify({ keys })
}
