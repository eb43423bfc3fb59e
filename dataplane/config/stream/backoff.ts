const MIN_BACKOFF_MS = 10
const MAX_BACKOFF_MS = 15_000

/**
 * Delay before connection attempt `attempt` (from 0) after the last good response: doubles from 10 ms to 15 s, of which
 * the upper half is random, so that the data planes of a restarted operator do not come back all at once.
 * `random` gives [0, 1).
 */
export function backoffMs(attempt: number, random: () => number): number {
  const ceiling = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** Math.min(attempt, 30))
  return ceiling / 2 + random() * (ceiling / 2)
}
