let second = Number.NaN
let secondText = ''

/**
 * Formats wall-clock time for telemetry: RFC 3339 with microseconds and `Z`. `epochMs` may have a fraction. The text of the current second
 * is cached: most calls only append six digits.
 */
export function formatTime(epochMs: number): string {
  const whole = Math.floor(epochMs / 1000)
  if (whole !== second) {
    second = whole
    secondText = new Date(whole * 1000).toISOString().slice(0, 20)
  }
  const micros = Math.min(999_999, Math.floor((epochMs - whole * 1000) * 1000))
  return `${secondText}${String(micros).padStart(6, '0')}Z`
}

let offsetMs = performance.timeOrigin
let checkedAtMs = 0
const MAX_DRIFT_MS = 20

/**
 * Converts `performance.now()` milliseconds to epoch milliseconds. The monotonic clock does not follow corrections of the wall
 * clock, so the offset is checked once a second and updated when it differs by more than jitter.
 */
export function toEpochMs(monotonicMs: number): number {
  if (monotonicMs - checkedAtMs > 1000) {
    checkedAtMs = monotonicMs
    const actual = Date.now() - performance.now()
    if (Math.abs(actual - offsetMs) > MAX_DRIFT_MS) offsetMs = actual
  }
  return offsetMs + monotonicMs
}

/**
 * A wall clock that is never set back: while the clock of the system is behind a time that was read before, time goes on by the monotonic clock.
 * Times in milliseconds.
 */
export function steadyClock(epochMs: () => number, monotonicMs: () => number = () => performance.now()): () => number {
  let latestMs = -Infinity
  let readAtMs = 0
  return () => {
    const [nowMs, monotonic] = [epochMs(), monotonicMs()]
    latestMs = nowMs >= latestMs ? nowMs : latestMs + Math.max(0, monotonic - readAtMs)
    readAtMs = monotonic
    return latestMs
  }
}
