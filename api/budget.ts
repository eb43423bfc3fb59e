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

/** The fields that matter to a rate limit quota service. */
interface QuotaFields {
  readonly quotaService?: object
  readonly limits?: readonly { readonly requests?: number }[]
  readonly store?: string
  readonly alertAt?: readonly number[]
}

/** Whether a rate limit quota service can assign the limit of a budget: one of requests. */
export const isAssignable = ({ limits }: QuotaFields): boolean => limits?.length === 1 && limits[0]?.requests !== undefined

/** Whether the operator divides a budget among replicas: one with scope Gateway that neither a store nor another quota service counts. */
export const isDivided = ({ scope, store, quotaService }: { readonly scope?: string; readonly store?: string; readonly quotaService?: object }): boolean =>
  scope === 'Gateway' && store === undefined && quotaService === undefined

/** Problems of a budget that JSON Schema cannot express. The API server rejects those of `quotaService`. */
export function findBudgetProblems(budget: Readonly<Record<string, unknown>>): { readonly field: string; readonly problem: string }[] {
  const { onExceeded, timeZone } = budget
  const { quotaService, store, alertAt }: QuotaFields = budget
  return [
    ...(quotaService !== undefined && !isAssignable(budget)
      ? [{ field: 'limits', problem: 'with quotaService, limits must be one limit of requests; no assignment is asked for, and onDisconnect decides' }]
      : []),
    ...(quotaService !== undefined && store !== undefined
      ? [{ field: 'store', problem: `"${store}" has no effect with quotaService: the service counts` }]
      : []),
    ...(quotaService !== undefined && alertAt !== undefined
      ? [{ field: 'alertAt', problem: `${JSON.stringify(alertAt)} has no effect with quotaService: the service counts` }]
      : []),
    ...(readOnExceeded(onExceeded) === undefined
      ? [{ field: 'onExceeded', problem: `${JSON.stringify(onExceeded)} is none of Reject, Audit and {model: NAME}; the budget rejects` }]
      : []),
    ...(typeof timeZone === 'string' && !isTimeZone(timeZone)
      ? [{ field: 'timeZone', problem: `"${timeZone}" is no time zone, such as Europe/Berlin; windows are those of UTC` }]
      : []),
  ]
}
