/** Handling of requests that exceed a budget: 429, admission, or admission with another model. */
export type OnExceeded = 'Reject' | 'Audit' | { readonly model: string }

/** Reads `onExceeded` of a budget; undefined if the value is none of those that it may have. */
export function readOnExceeded(value: unknown): OnExceeded | undefined {
  if (value === undefined || value === 'Reject') return 'Reject'
  if (value === 'Audit') return value
  if (typeof value !== 'object' || value === null || Object.keys(value).join() !== 'model') return undefined
  const { model } = value as { readonly model: unknown }
  return typeof model === 'string' && model !== '' ? { model } : undefined
}

/** Whether a time zone is one of the IANA database that this Node has. */
export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/** Problems of a budget that its schema cannot express. */
export function findBudgetProblems({ onExceeded, timeZone }: Readonly<Record<string, unknown>>): { readonly field: string; readonly problem: string }[] {
  return [
    ...(readOnExceeded(onExceeded) === undefined
      ? [{ field: 'onExceeded', problem: `${JSON.stringify(onExceeded)} is none of Reject, Audit and {model: NAME}; the budget rejects` }]
      : []),
    ...(typeof timeZone === 'string' && !isTimeZone(timeZone)
      ? [{ field: 'timeZone', problem: `"${timeZone}" is no time zone, such as Europe/Berlin; windows are those of UTC` }]
      : []),
  ]
}
