import { backoffDelay, withJitter } from '../../runtime/backoff.ts'

const LIMITS = { initialMs: 10, maxMs: 15_000 }

/**
 * Milliseconds before connection attempt `attempt`, counted from 0 since the last applied response. Jitter keeps the data planes of a restarted
 * operator from reconnecting all at once. `random` returns [0, 1).
 */
export const backoffMs = (attempt: number, random: () => number): number => withJitter(backoffDelay(attempt, LIMITS), random)
