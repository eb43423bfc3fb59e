import type { BudgetUse } from './budgets.ts'
import type { ConfigVersions } from './config.ts'
import type { LlmRow, LlmUsage } from './llm.ts'
import type { McpSession, McpSessions } from './mcp.ts'
import type { BackendNode, EndpointNode, Overview, Problem } from './overview.ts'
import type { RequestBatch } from './requests.ts'
import type { Spend, SpendRow } from './spend.ts'
import type { Series, SeriesPoint, Stats, StatsRow } from './stats.ts'

const MAX_BUDGET_ROWS = 500
const MAX_SESSIONS = 200

/** A response of one process; `name` is that of its pod. */
export interface Named<T> {
  readonly name: string
  readonly value: T
}

/** The duration below which a part of the requests stayed, milliseconds; null if there were none. Linear within a bucket. */
export function quantile(bounds: readonly number[], counts: readonly number[], part: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let rank = part * total
  for (const [index, count] of counts.entries()) {
    if (count === 0 || rank > count) {
      rank -= count
      continue
    }
    const low = index === 0 ? 0 : (bounds[index - 1] ?? 0)
    const high = bounds[index] ?? low
    return (low + ((high - low) * rank) / count) * 1000
  }
  return (bounds.at(-1) ?? 0) * 1000
}

/** One endpoint as two destinations, threads or pods see it: the worse health, the sum of the requests in flight. */
export function mergeEndpoint(one: EndpointNode | undefined, other: EndpointNode): EndpointNode {
  if (one === undefined) return other
  return {
    ...one,
    health: ofNumbers(Math.min, one.health, other.health),
    evictedForMs: ofNumbers(Math.max, one.evictedForMs, other.evictedForMs),
    evictedBecause: one.evictedBecause ?? other.evictedBecause,
    failedCheck: one.failedCheck ?? other.failedCheck,
    latencyMs: ofNumbers(Math.max, one.latencyMs, other.latencyMs),
    pending: one.pending + other.pending,
    draining: one.draining || other.draining,
    zone: one.zone ?? other.zone,
  }
}

const ofNumbers = (choose: (a: number, b: number) => number, a: number | null, b: number | null): number | null =>
  a === null || b === null ? (a ?? b) : choose(a, b)

/** The sum of the numbers of several processes. */
export function mergeStats(all: readonly Stats[], timeMs: number): Stats {
  const bounds = boundsOf(all)
  const rows = new Map<string, StatsRow>()
  for (const { rows: own } of all)
    for (const row of own) {
      const known = rows.get(row.key)
      const requestsPerSecond = row.requestsPerSecond + (known?.requestsPerSecond ?? 0)
      rows.set(row.key, known === undefined ? row : { key: row.key, requestsPerSecond, ...addPoints(bounds, known, row) })
    }
  return { timeMs, windowSeconds: Math.max(1, ...all.map(({ windowSeconds }) => windowSeconds)), bounds, rows: [...rows.values()] }
}

/** The sum of the histories of several processes; the last points are those of the same time. */
export function mergeSeries(all: readonly Series[], key: string): Series {
  const bounds = boundsOf(all)
  const length = Math.max(0, ...all.map(({ points }) => points.length))
  const nothing: SeriesPoint = { requests: 0, clientErrors: 0, serverErrors: 0, counts: [], p50Ms: null, p95Ms: null }
  const points = Array.from({ length }, (_, index) =>
    all.map((series) => series.points.at(index - length) ?? nothing).reduce((a, b) => addPoints(bounds, a, b), nothing),
  )
  return { key, endMs: Math.max(0, ...all.map(({ endMs }) => endMs)), stepSeconds: all[0]?.stepSeconds ?? 10, bounds, points }
}

const boundsOf = (all: readonly { readonly bounds: number[] }[]): number[] => all.find(({ bounds }) => bounds.length > 0)?.bounds ?? []

function addPoints(bounds: readonly number[], a: SeriesPoint, b: SeriesPoint): SeriesPoint {
  const counts = Array.from({ length: Math.max(a.counts.length, b.counts.length) }, (_, index) => (a.counts[index] ?? 0) + (b.counts[index] ?? 0))
  return {
    requests: a.requests + b.requests,
    clientErrors: a.clientErrors + b.clientErrors,
    serverErrors: a.serverErrors + b.serverErrors,
    counts,
    p50Ms: quantile(bounds, counts, 0.5),
    p95Ms: quantile(bounds, counts, 0.95),
  }
}

/** The requests of several processes by time, at most `limit` of them, evenly chosen. */
export function mergeBatches(all: readonly Named<RequestBatch>[], limit: number): RequestBatch {
  const records = all
    .flatMap(({ name, value }) => value.records.map((record) => (name === '' ? record : { ...record, pod: name })))
    .sort((a, b) => a.timeMs - b.timeMs)
  const kept =
    records.length <= limit
      ? records
      : Array.from({ length: limit }, (_, index) => records[Math.floor((index * records.length) / limit)] as (typeof records)[number])
  const sum = (name: 'seen' | 'skipped'): number => all.reduce((total, { value }) => total + value[name], 0)
  return { records: kept, seen: sum('seen'), skipped: sum('skipped') + records.length - kept.length }
}

/** The graph of several processes with the same config; a node of one of them is in it. */
export function mergeOverviews(all: readonly Named<Overview>[], timeMs: number): Overview {
  const values = all.map(({ value }) => value)
  const byKey = <T extends { readonly key: string }>(lists: readonly (readonly T[])[], merge: (a: T, b: T) => T = (a) => a): T[] => {
    const found = new Map<string, T>()
    for (const node of lists.flat()) {
      const known = found.get(node.key)
      found.set(node.key, known === undefined ? node : merge(known, node))
    }
    return [...found.values()]
  }
  return {
    timeMs,
    replicas: all.flatMap(({ name, value }) => value.replicas.map((replica) => ({ ...replica, name }))),
    gateways: byKey(values.map(({ gateways }) => gateways)),
    listeners: byKey(values.map(({ listeners }) => listeners)),
    routes: byKey(values.map(({ routes }) => routes)),
    backends: byKey(
      values.map(({ backends }) => backends),
      mergeBackend,
    ),
    // Data planes of older versions do not say it.
    ledger: values.some(({ ledger }) => ledger !== false),
    problems: mergeProblems(all.map(({ name, value }) => ({ name, value: value.problems }))),
    stats: mergeStats(
      values.map(({ stats }) => stats),
      timeMs,
    ),
  }
}

function mergeBackend(a: BackendNode, b: BackendNode): BackendNode {
  const endpoints = new Map(a.endpoints.map((endpoint) => [endpoint.address, endpoint]))
  for (const endpoint of b.endpoints) endpoints.set(endpoint.address, mergeEndpoint(endpoints.get(endpoint.address), endpoint))
  return { ...a, endpoints: [...endpoints.values()] }
}

/** Each problem once: those that all processes have without a pod, the others with the pod of one that has it. Errors first. */
function mergeProblems(all: readonly Named<readonly Problem[]>[]): Problem[] {
  const found = new Map<string, { readonly problem: Problem; readonly pods: string[] }>()
  for (const { name, value } of all)
    for (const problem of value) {
      // Times until an endpoint returns, and used parts of budgets, differ.
      const key = `${problem.severity} ${problem.code ?? ''} ${problem.object ?? ''} ${problem.message.replaceAll(/\d+ (?:s\b|%)/g, '')}`
      const known = found.get(key)
      if (known === undefined) found.set(key, { problem, pods: [name] })
      else known.pods.push(name)
    }
  const problems = [...found.values()].map(({ problem, pods }) => ({ ...problem, pod: pods.length === all.length ? null : pods.join(', ') }))
  return [...problems.filter(({ severity }) => severity === 'error'), ...problems.filter(({ severity }) => severity !== 'error')]
}

/** Versions and rejections of several processes by time, newest first, each with its pod. */
export function mergeVersions(all: readonly Named<ConfigVersions>[]): ConfigVersions {
  return {
    current: Math.max(0, ...all.map(({ value }) => value.current)),
    versions: all
      .flatMap(({ name, value }) => value.versions.map((version) => ({ ...version, pod: name })))
      .sort((a, b) => b.appliedAtMs - a.appliedAtMs || b.version - a.version),
    rejections: all.flatMap(({ name, value }) => value.rejections.map((rejection) => ({ ...rejection, pod: name }))).sort((a, b) => b.timeMs - a.timeMs),
  }
}

/** The sum of the LLM numbers of several threads or processes. */
export function mergeLlmUsage(all: readonly LlmUsage[], timeMs: number): LlmUsage {
  const rows = new Map<string, LlmRow>()
  for (const row of all.flatMap((usage) => usage.rows)) {
    const id = JSON.stringify([row.model, row.provider, row.key, row.route])
    const known = rows.get(id)
    rows.set(id, known === undefined ? row : addLlmRows(known, row))
  }
  return { timeMs, sinceMs: Math.min(timeMs, ...all.map(({ sinceMs }) => sinceMs)), rows: [...rows.values()] }
}

const addLlmRows = (a: LlmRow, b: LlmRow): LlmRow => ({
  ...a,
  requests: a.requests + b.requests,
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  cachedTokens: a.cachedTokens + b.cachedTokens,
  cost: a.cost + b.cost,
  streams: a.streams + b.streams,
  firstTokenSeconds: a.firstTokenSeconds + b.firstTokenSeconds,
  generationSeconds: a.generationSeconds + b.generationSeconds,
  generatedTokens: a.generatedTokens + b.generatedTokens,
  rateLimited: a.rateLimited + b.rateLimited,
  clientErrors: a.clientErrors + b.clientErrors,
  serverErrors: a.serverErrors + b.serverErrors,
  timeouts: a.timeouts + b.timeouts,
  aborted: a.aborted + b.aborted,
})

/** The budgets of several processes, each with its pod, because each has its own counters. The highest used part first. */
export function mergeBudgets(all: readonly Named<BudgetUse>[], timeMs: number): BudgetUse {
  const rows = all.flatMap(({ name, value }) => value.rows.map((row) => ({ ...row, pod: name }))).sort((a, b) => b.used / b.limit - a.used / a.limit)
  return { timeMs, rows: rows.slice(0, MAX_BUDGET_ROWS), isCut: rows.length > MAX_BUDGET_ROWS || all.some(({ value }) => value.isCut) }
}

/** The sessions of several threads or processes, each once: any of them can handle its requests. The most recently used first. */
export function mergeMcpSessions(all: readonly Named<McpSessions>[], timeMs: number): McpSessions {
  const found: McpSession[] = []
  const byId = new Map<string, number>()
  let total = 0
  for (const { name, value } of all) {
    total += value.total
    for (const own of value.sessions) {
      const session = name === '' ? own : { ...own, pods: [name] }
      const at = session.id === null ? undefined : byId.get(session.id)
      const known = at === undefined ? undefined : found[at]
      if (at === undefined || known === undefined) {
        if (session.id !== null) byId.set(session.id, found.length)
        found.push(session)
        continue
      }
      found[at] = mergeMcpSession(known, session)
      total--
    }
  }
  return { timeMs, sessions: found.sort((a, b) => a.idleMs - b.idleMs).slice(0, MAX_SESSIONS), total }
}

function mergeMcpSession(a: McpSession, b: McpSession): McpSession {
  const [latest, other] = a.idleMs <= b.idleMs ? [a, b] : [b, a]
  return {
    ...latest,
    revision: latest.revision ?? other.revision,
    client: latest.client ?? other.client,
    ageMs: ofNumbers(Math.max, a.ageMs, b.ageMs),
    open: a.open + b.open,
    pods: [...new Set([...latest.pods, ...other.pods])],
  }
}

/** The sum of the spend of several processes, whose reports have the same dimensions and times. */
export function mergeSpend(all: readonly [Spend, ...Spend[]]): Spend {
  const rows = new Map<string, SpendRow>()
  const stores = new Set<string>()
  const isRepeated = ({ store }: Spend): boolean => store !== undefined && (stores.has(store) || !stores.add(store))
  for (const row of all.flatMap((spend) => (isRepeated(spend) ? [] : spend.rows))) {
    const id = JSON.stringify(row.group)
    const known = rows.get(id)
    rows.set(id, known === undefined ? row : addSpendRows(known, row))
  }
  const sorted = [...rows.values()].sort((a, b) => b.cost - a.cost || b.requests - a.requests)
  return { ...all[0], rows: sorted, isCut: all.some(({ isCut }) => isCut) }
}

const addSpendRows = (a: SpendRow, b: SpendRow): SpendRow => ({
  group: a.group,
  requests: a.requests + b.requests,
  errors: a.errors + b.errors,
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  cachedTokens: a.cachedTokens + b.cachedTokens,
  reasoningTokens: a.reasoningTokens + b.reasoningTokens,
  cost: a.cost + b.cost,
  unpriced: a.unpriced + b.unpriced,
  seconds: a.seconds + b.seconds,
})
