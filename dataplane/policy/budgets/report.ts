import { createHash } from 'node:crypto'
import { compileLimits, USD_UNITS } from '#api/budget-limit.ts'
import type { BudgetRow, BudgetUse } from '#api/management/budgets.ts'
import type { Budget, Policy } from '#gen/config/types.ts'
import { Slice } from '../../runtime/cooperative.ts'
import { isSensitiveName } from '#api/secret-fields.ts'
import { isSensitiveHeader, redactText } from '../../observe/telemetry/redact.ts'
import type { PolicyState } from '../state.ts'
import { keyOfId, Ledger } from './ledger.ts'

/** Keys of a limit that are reported. */
const MAX_KEYS = 100
const MAX_ROWS = 500
/** Percentage from which a budget without `alertAt` is near its end. */
const NOTICE_PERCENT = 90

/** What the keys of a limit have used in this thread, the highest first. */
export interface LimitUse {
  /** Name of the limit, the same in all workers. */
  readonly name: string
  readonly keys: readonly { readonly key: string | null; readonly used: number; readonly endMs: number }[]
  readonly isCut: boolean
}

/** Reads the counters of this thread. Those of all workers are the same, of which each thread knows the keys that it has used. */
export async function readLimits(registry: PolicyState['registry'], nowMs = Date.now()): Promise<LimitUse[]> {
  const found: LimitUse[] = []
  const slice = new Slice()
  for (const [name, counters] of Ledger.find(registry)?.entries() ?? []) {
    let keys: LimitUse['keys'][number][] = []
    let isCut = false
    const cut = (): void => {
      isCut ||= keys.length > MAX_KEYS
      keys = keys.sort((a, b) => b.used - a.used).slice(0, MAX_KEYS)
    }
    for (const [id, counter] of counters) {
      const reading = counter.read(nowMs)
      if (reading !== undefined && reading.used > 0) keys.push({ key: keyOfId(id), ...reading })
      if (keys.length >= 2 * MAX_KEYS) cut()
      if (slice.isOver) await slice.next()
    }
    cut()
    if (keys.length > 0) found.push({ name, keys, isCut })
  }
  return found
}

/** A limit of the config. */
interface Described {
  readonly name: string
  readonly row: Pick<BudgetRow, 'policy' | 'budget' | 'unit' | 'window' | 'limit'>
  /** Units of the counter in one unit of the limit. */
  readonly scale: number
  readonly noticePercent: number
  readonly isSecret: boolean
}

/** What is left of the budgets in force. `threads`: the counters of each thread. */
export function reportBudgets(policies: Iterable<Policy>, threads: readonly (readonly LimitUse[])[], timeMs = Date.now()): BudgetUse {
  const limits = new Map<string, Described>()
  for (const policy of policies) for (const limit of describe(policy)) limits.set(limit.name, limit)
  const rows = new Map<string, BudgetRow>()
  for (const { name, keys } of threads.flat()) {
    const limit = limits.get(name)
    if (limit === undefined) continue
    for (const use of keys) {
      const row = toRow(limit, use)
      const id = JSON.stringify([name, use.key])
      // A thread may have read the shared counter before another one.
      if ((rows.get(id)?.used ?? -1) < row.used) rows.set(id, row)
    }
  }
  const sorted = [...rows.values()].sort((a, b) => b.used / b.limit - a.used / a.limit || a.budget.localeCompare(b.budget))
  return { timeMs, rows: sorted.slice(0, MAX_ROWS), isCut: sorted.length > MAX_ROWS || threads.flat().some(({ name, isCut }) => isCut && limits.has(name)) }
}

function toRow({ row, scale, noticePercent, isSecret }: Described, { key, used, endMs }: LimitUse['keys'][number]): BudgetRow {
  const amount = used / scale
  return {
    ...row,
    key: key === null ? null : isSecret ? digest(key) : redactText(key),
    used: amount,
    left: Math.max(0, row.limit - amount),
    windowEndMs: endMs,
    isNearEnd: amount * 100 >= row.limit * noticePercent,
  }
}

const digest = (key: string): string => (key.startsWith('sha256:') ? key : `sha256:${createHash('sha256').update(key).digest('base64')}`)

/** By the list of budgets in the message, which is the same object while the policy is unchanged. */
const described = new WeakMap<readonly Budget[], readonly Described[]>()

function describe({ policy, traffic }: Policy): readonly Described[] {
  const budgets = traffic?.budgets
  if (budgets === undefined) return []
  const known = described.get(budgets)
  if (known !== undefined) return known
  const name = `${policy.namespace}/${policy.name}`
  const limits = budgets.flatMap((budget) =>
    compileLimits(`${name} ${budget.name}`, budget.limits, budget.timeZone).map(({ name: id, unit, window, amount }): Described => {
      const scale = unit === 'usd' ? USD_UNITS : 1
      return {
        name: id,
        row: { policy: name, budget: budget.name, unit, window, limit: amount / scale },
        scale,
        noticePercent: Math.max(0, ...(budget.alertAt ?? [])) || NOTICE_PERCENT,
        isSecret: readsCredentials(budget.key),
      }
    }),
  )
  described.set(budgets, limits)
  return limits
}

/** Whether an expression may return a credential, by the names in it. `apiKey` is the metadata of a key, `apiKey.key` the key. */
function readsCredentials(expression: string | undefined): boolean {
  const names = expression?.match(/[\w-]+/g) ?? []
  return names.some((name, index) =>
    name === 'apiKey'
      ? names[index + 1] === 'key'
      : isSensitiveName(name) || (name.includes('-') && isSensitiveHeader(name)) || /[-_](?:token|secret|key)$/i.test(name),
  )
}
