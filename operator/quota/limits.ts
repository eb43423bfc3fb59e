import { compileLimits, type CompiledLimit } from '#api/budget-limit.ts'
import { isDivided } from '#api/budget.ts'
import type { QuotaLimit } from './pool.ts'

/** A message of the config as the operator serves it. */
export interface PolicyMessage {
  readonly kind: string
  readonly message: object
}

/** The parts of a Policy message that are read here. */
interface Policy {
  readonly policy: { readonly namespace: string; readonly name: string }
  readonly traffic?: {
    readonly budgets?: readonly {
      readonly name: string
      readonly scope?: string
      readonly store?: string
      readonly quotaService?: object
      readonly timeZone?: string
      readonly alertAt?: readonly number[]
      readonly limits: Parameters<typeof compileLimits>[1]
    }[]
  }
}

/** A limit with the budget that it belongs to. */
export interface BudgetLimit extends CompiledLimit, QuotaLimit {
  readonly policy: { readonly namespace: string; readonly name: string }
  readonly budget: string
}

/** The limits of budgets that the operator divides, in the messages of one Gateway, by name. */
export function findLimits(messages: readonly PolicyMessage[]): Map<string, BudgetLimit> {
  const limits = new Map<string, BudgetLimit>()
  for (const { kind, message } of messages) {
    if (kind !== 'policy') continue
    const { policy, traffic } = message as Policy
    for (const { name, limits: own, timeZone, alertAt = [] } of traffic?.budgets?.filter(isDivided) ?? []) {
      for (const limit of compileLimits(`${policy.namespace}/${policy.name} ${name}`, own, timeZone))
        limits.set(limit.name, { ...limit, policy, budget: name, alertAt: alertAt.toSorted((a, b) => b - a) })
    }
  }
  return limits
}
