import { cacheUntilExpiry } from '../../upstream/cloud/cached.ts'

/** An access token. */
export interface AccessToken {
  readonly token: string
  /** Epoch milliseconds. */
  readonly expiresAtMs: number
}

/** The authorization server does not accept the token of the user. */
export class RejectedError extends Error {}

export interface TokenCacheOptions {
  readonly nowMs?: () => number
  readonly maxTokens?: number
  /** Limit of all tokens together, in characters. */
  readonly maxChars?: number
}

interface Entry {
  readonly find: () => Promise<AccessToken>
  /** The latest one, because configs change. */
  fetch: () => Promise<AccessToken>
  chars: number
  rejection: RejectedError | undefined
  rejectedUntilMs: number
}

/** Requests with a rejected token do not reach the authorization server for this long. */
const REJECTED_MS = 10_000

/**
 * Tokens by user, the least recently used first. Concurrent requests of a user share one fetch, and tokens are renewed shortly before they
 * expire. Errors are not cached, except that the server rejected the user.
 */
export class TokenCache {
  readonly #nowMs: () => number
  readonly #maxTokens: number
  readonly #maxChars: number
  readonly #entries = new Map<string, Entry>()
  #chars = 0

  constructor({ nowMs = Date.now, maxTokens = 10_000, maxChars = 32 * 1024 * 1024 }: TokenCacheOptions = {}) {
    this.#nowMs = nowMs
    this.#maxTokens = maxTokens
    this.#maxChars = maxChars
  }

  /** The token of `key`, of a user or the process. `fetch` is called if there is none that is valid, and rejects with a RejectedError for a rejected user. */
  async get(key: string, fetch: () => Promise<AccessToken>, owner: 'process' | 'users' = 'users'): Promise<string> {
    const entry = this.#entries.get(key) ?? this.#createEntry(key, fetch, owner)
    entry.fetch = fetch
    // Move it to the end.
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    this.#evict()
    if (entry.rejection !== undefined && this.#nowMs() < entry.rejectedUntilMs) throw entry.rejection
    return (await entry.find()).token
  }

  #createEntry(key: string, fetch: () => Promise<AccessToken>, owner: 'process' | 'users'): Entry {
    const renew = async (): Promise<AccessToken> => {
      try {
        const found = await entry.fetch()
        entry.rejection = undefined
        if (this.#entries.get(key) === entry) this.#chars += found.token.length - entry.chars
        entry.chars = found.token.length
        this.#evict()
        return found
      } catch (error) {
        if (error instanceof RejectedError) {
          entry.rejection = error
          entry.rejectedUntilMs = this.#nowMs() + REJECTED_MS
        }
        throw error
      }
    }
    const entry: Entry = { find: cacheUntilExpiry(renew, this.#nowMs, owner), fetch, chars: 0, rejection: undefined, rejectedUntilMs: 0 }
    return entry
  }

  #evict(): void {
    for (const [key, { chars }] of this.#entries) {
      if (this.#entries.size <= this.#maxTokens && this.#chars <= this.#maxChars) return
      this.#entries.delete(key)
      this.#chars -= chars
    }
  }
}
