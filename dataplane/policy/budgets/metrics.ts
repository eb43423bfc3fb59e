import { defineMetrics } from '../../observe/telemetry/metrics/area.ts'
import type { Series } from '../../observe/telemetry/metrics/registry.ts'

const LABELS = ['policy', 'budget', 'unit'] as const

/** Metrics of budgets (traffic.md §8.14). Keys are not labels, because there may be any number. */
export const budgetMetrics = defineMetrics((registry) => {
  const spent = registry.counter('proxy_budget_spent_total', 'US dollars, LLM tokens and requests charged to budgets.', LABELS)
  const exceeded = registry.counter('proxy_budget_exceeded_total', 'Requests that exceeded a budget, by outcome.', [...LABELS, 'outcome'])
  const alerts = registry.counter('proxy_budget_alerts_total', 'Percentages of budgets that were reached, counted once per key and window.', [
    ...LABELS,
    'percent',
  ])
  const waits = registry.counter('proxy_budget_share_waits_total', 'Requests that waited for a larger share of a budget of all replicas.', LABELS)
  const alone = registry.counter(
    'proxy_budget_disconnected_total',
    'Requests of a replica that got no share of a budget, or could not charge it in Redis or PostgreSQL, by outcome.',
    [...LABELS, 'outcome'],
  )
  return {
    evicted: registry.counter('proxy_budget_evicted_keys_total', 'Keys of budgets that were dropped for other keys.').series(),
    unsettled: registry
      .counter('proxy_budget_unsettled_total', 'Reservations in Redis or PostgreSQL that were never settled because the server could not be used for too long.')
      .series(),
    spent: (...values: Values): Series => spent.series(...values),
    exceeded: (outcome: 'rejected' | 'audited' | 'replaced', ...values: Values): Series => exceeded.series(...values, outcome),
    waits: (...values: Values): Series => waits.series(...values),
    alone: (outcome: 'admitted' | 'rejected', ...values: Values): Series => alone.series(...values, outcome),
    alerts: (percent: number, ...values: Values): Series => alerts.series(...values, String(percent)),
  }
})

type Values = readonly [policy: string, budget: string, unit: string]
