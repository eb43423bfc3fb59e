/** Limits of an exponential backoff, in milliseconds. */
export interface Backoff {
  /** Delay after the first failure. */
  readonly initialMs: number
  /** Delays grow no further. */
  readonly maxMs: number
}

/**
 * Delay after the failure numbered `failure` (from 0): doubles from `initialMs` to `maxMs`.
 *
 * @example
 * backoffDelay(3, { initialMs: 1000, maxMs: 30_000 }) // 8000
 */
export function backoffDelay(failure: number, { initialMs, maxMs }: Backoff): number {
  return Math.min(maxMs, initialMs * 2 ** Math.min(failure, 30))
}

/** Replaces the upper half of a delay by a random share, so that many clients do not return at once. `random` returns [0, 1). */
export const withJitter = (delayMs: number, random: () => number): number => delayMs / 2 + random() * (delayMs / 2)
