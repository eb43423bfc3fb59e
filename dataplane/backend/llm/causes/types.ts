import type { AIModelFallback } from '#gen/config/types.ts'

/** Why a target failed, as far as another one may do better: what `fallback` of a model can name. */
export type FailureCause = AIModelFallback['on'][number]

/** Why an attempt failed (llm.md §15.4). `Invalid` is the fault of the request, which no other target would accept either. */
export type Cause = FailureCause | 'Invalid'

/**
 * Which later requests fail for the same cause. Only signals that the text of a request cannot produce have more than the scope `request`, because a client
 * could otherwise evict a provider for all others.
 */
export type Scope = 'request' | 'model' | 'endpoint' | 'credential' | 'account'

/** Why an attempt failed, and what the provider says about the next one. */
export interface Verdict {
  readonly cause: Cause
  readonly scope: Scope
  /** Until the provider accepts requests again, by its own words. */
  readonly retryAfterMs?: number | undefined
  /** What `x-should-retry` says. */
  readonly shouldRetry?: boolean | undefined
}

/** What an error says, in the shapes of all providers. */
export interface Evidence {
  /** Codes, types and exception names, in lower case. */
  readonly codes: ReadonlySet<string>
  readonly message: string
  /** A status in the body. */
  readonly status: number | undefined
  /** `RetryInfo` of Google's APIs. */
  readonly retryAfterMs: number | undefined
}

/** One cell of the table: a signal that documents a cause. All members that are set must match. */
export interface Signal {
  readonly status?: readonly number[]
  /** One of these is a code of the error; in lower case. */
  readonly codes?: readonly string[]
  readonly says?: RegExp
  readonly cause: Cause
  readonly scope: Scope
  /** Where the signal is documented or was observed. */
  readonly source: string
}
