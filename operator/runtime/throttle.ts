import { textOf, type Log } from './log.ts'

/** Logs a failure of `subject`. `consequence` says what happens next. */
export type FailureLog = (subject: string, error: unknown, consequence: string) => void

const MAX_CAUSES = 256

/**
 * Logs failures as warnings, each cause at most once per interval. While an API server restarts, every watch fails several times a second for
 * one cause. A later line counts the failures that were not logged.
 *
 * @param now milliseconds of a monotonic clock
 */
export function createFailureLog(log: Log, now: () => number, intervalMs = 60_000): FailureLog {
  const causes = new Map<string, { readonly at: number; suppressed: number }>()
  return (subject, error, consequence) => {
    const cause = causeOf(error)
    const known = causes.get(cause)
    if (known !== undefined && now() - known.at < intervalMs) {
      known.suppressed += 1
      return
    }
    causes.delete(cause)
    causes.set(cause, { at: now(), suppressed: 0 })
    const [oldest] = causes.keys()
    if (causes.size > MAX_CAUSES && oldest !== undefined) causes.delete(oldest)
    const more = known === undefined || known.suppressed === 0 ? {} : { suppressed: known.suppressed }
    log('warn', `${subject}: ${textOf(error)}; ${consequence}`, { code: 'PX5008', ...more })
  }
}

/** The text that failures of one cause share: without the request, which differs between watches. */
function causeOf(error: unknown): string {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return textOf(inner).replace(/^[A-Z]+ \/\S*: /, '')
}
