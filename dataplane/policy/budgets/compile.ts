import { compileLimits, type CompiledLimit } from '#api/budget-limit.ts'
import { isAssignable, readOnExceeded, type OnExceeded } from '#api/budget.ts'
import type { Program } from '#api/cel/index.ts'
import { parseDuration } from '#api/duration.ts'
import type { Budget, BudgetQuotaService } from '#gen/config/types.ts'
import { compileExpression } from '../../request/expression/program.ts'
import type { QuotaServiceRef } from '../../runtime/quotas.ts'
import type { StoreKind } from './counter-store.ts'

/** Time between reports to a rate limit quota service: default and minimum. */
const REPORT_MS = 1000
const MIN_REPORT_MS = 100

export interface CompiledBudget {
  readonly name: string
  /** `<namespace>/<name>` of the policy. */
  readonly policy: string
  readonly key: Program | undefined
  readonly ignoresMissingKey: boolean
  readonly limits: readonly CompiledLimit[]
  readonly models: Program | undefined
  readonly onExceeded: OnExceeded
  /** Percentages, the highest first. */
  readonly alertAt: readonly number[]
  readonly allowsUnpriced: boolean
  readonly exposesRemaining: boolean
  /** How the budget holds over replicas; undefined: each replica has the full budget. */
  readonly sharing: BudgetSharing | undefined
  /** Budgets above it, from its parent up. */
  readonly ancestors: readonly CompiledBudget[]
}

/** A budget whose limits hold for several replicas together. */
export interface BudgetSharing {
  /** Counters in a store, shares from the operator, or assignments of a rate limit quota service. */
  readonly by: StoreKind | 'operator' | 'service'
  /** Whether this replica goes on with the full budget while it gets no shares or assignments, or the store cannot be used. */
  readonly allowsDisconnected: boolean
  /** Buckets of the service; undefined if it cannot assign the limits. */
  readonly quota?: BudgetQuota | undefined
}

interface BudgetQuota {
  readonly service: QuotaServiceRef
  /** The id of the bucket without the value of the key. */
  readonly bucket: Readonly<Record<string, string>>
  readonly keyName: string
}

/** Budgets of one policy. */
export interface BudgetSection {
  readonly policy: string
  readonly budgets: readonly Budget[]
}

export function compileSections(sections: readonly BudgetSection[]): CompiledBudget[] {
  // A policy with several targets, such as a Gateway and a route of it, applies to a request once.
  const known = new Set<string>()
  return sections.flatMap(({ policy, budgets }) => {
    const compiled = new Map(budgets.map((budget) => [budget.name, compileBudget(policy, budget)]))
    return budgets.flatMap(({ name }) => {
      const own = compiled.get(name)
      const id = `${policy} ${name}`
      const isKnown = known.has(id)
      known.add(id)
      return own === undefined || isKnown ? [] : Object.assign(own, { ancestors: ancestorsOf(name, budgets).flatMap((other) => compiled.get(other) ?? []) })
    })
  })
}

function compileBudget(policy: string, budget: Budget): CompiledBudget {
  const {
    name,
    key,
    onMissingKey,
    limits,
    models,
    onExceeded,
    alertAt = [],
    unpriced,
    timeZone,
    exposeRemaining = false,
    scope,
    store,
    onDisconnect,
    quotaService,
  } = budget
  return {
    name,
    policy,
    key: key === undefined ? undefined : compileExpression(key, 'request'),
    ignoresMissingKey: onMissingKey === 'Ignore',
    limits: compileLimits(`${policy} ${name}`, limits, timeZone),
    models: models === undefined ? undefined : compileExpression(models, 'backend'),
    onExceeded: readOnExceeded(onExceeded) ?? 'Reject',
    alertAt: alertAt.toSorted((a, b) => b - a),
    allowsUnpriced: unpriced === 'Allow',
    exposesRemaining: exposeRemaining,
    sharing:
      quotaService === undefined
        ? sharingOf(scope, store, onDisconnect === 'Allow')
        : { by: 'service', allowsDisconnected: onDisconnect === 'Allow', quota: isAssignable(budget) ? compileQuota(policy, name, quotaService) : undefined },
    ancestors: [],
  }
}

/** Names of the budgets above one; the names of a circle once each. */
function ancestorsOf(name: string, budgets: readonly Budget[]): string[] {
  const seen = new Set([name])
  let parent = budgets.find((budget) => budget.name === name)?.parent
  while (parent !== undefined && !seen.has(parent)) {
    seen.add(parent)
    const above = parent
    parent = budgets.find((budget) => budget.name === above)?.parent
  }
  seen.delete(name)
  return [...seen]
}

function compileQuota(policy: string, budget: string, { backendRef, domain, bucket, keyName = 'key', reportingInterval }: BudgetQuotaService): BudgetQuota {
  const intervalMs = Math.max(MIN_REPORT_MS, (reportingInterval === undefined ? undefined : parseDuration(reportingInterval)) ?? REPORT_MS)
  return { service: { backendRef, domain, intervalMs }, bucket: bucket ?? { policy, budget }, keyName }
}

const STORES = { Redis: 'redis', Postgres: 'postgres' } as const

function sharingOf(scope: Budget['scope'], store: Budget['store'], allowsDisconnected: boolean): BudgetSharing | undefined {
  if (store !== undefined) return { by: STORES[store], allowsDisconnected }
  return scope === 'Gateway' ? { by: 'operator', allowsDisconnected } : undefined
}
