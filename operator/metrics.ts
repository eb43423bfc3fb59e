import { METRIC_PREFIX } from '#api/names.ts'

/** A number that is read when somebody asks. */
export type Gauge = readonly [name: string, type: 'counter' | 'gauge', help: string, value: number]

export type ReconcileResult = 'success' | 'error'

/** Counts reconciles of one controller (operator.md §7.1). */
export interface ReconcileMetrics {
  /** Runs `work` and counts how it ended; rejects as it does. */
  measure(namespace: string, name: string, work: () => Promise<void>): Promise<void>
  /** Forgets the series of an object that is gone. */
  forget(namespace: string, name: string): void
  render(): string
}

/** Upper bounds, in seconds. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

const header = (name: string, type: string, help: string): string => `# HELP ${METRIC_PREFIX}${name} ${help}\n# TYPE ${METRIC_PREFIX}${name} ${type}\n`

export function renderGauges(gauges: readonly Gauge[]): string {
  return gauges.map(([name, type, help, value]) => `${header(name, type, help)}${METRIC_PREFIX}${name} ${value}\n`).join('')
}

/** @param now milliseconds, monotonic */
export function createReconcileMetrics(controller: string, now: () => number): ReconcileMetrics {
  const counts = new Map<string, Record<ReconcileResult, number>>()
  const buckets = BUCKETS.map(() => 0)
  let running = 0
  let total = 0
  let sumSeconds = 0

  return {
    async measure(namespace, name, work) {
      const startedAt = now()
      const key = `${namespace}/${name}`
      running += 1
      let result: ReconcileResult = 'error'
      try {
        await work()
        result = 'success'
      } finally {
        running -= 1
        const seconds = (now() - startedAt) / 1000
        total += 1
        sumSeconds += seconds
        BUCKETS.forEach((bound, index) => {
          if (seconds <= bound) buckets[index] = (buckets[index] ?? 0) + 1
        })
        const count = counts.get(key) ?? { success: 0, error: 0 }
        count[result] += 1
        counts.set(key, count)
      }
    },
    forget: (namespace, name) => void counts.delete(`${namespace}/${name}`),
    render() {
      const series = (name: string, labels: string, value: number): string => `${METRIC_PREFIX}${name}{controller="${controller}"${labels}} ${value}\n`
      const totals = [...counts].flatMap(([key, count]) => {
        const [namespace, name] = key.split('/')
        return (['success', 'error'] as const).map((result) =>
          series('controller_reconciliations_total', `,name="${name}",namespace="${namespace}",result="${result}"`, count[result]),
        )
      })
      const duration = 'controller_reconcile_duration_seconds'
      return [
        header('controller_reconciliations_total', 'counter', 'Reconciles of an object, by how they ended'),
        ...totals,
        header(duration, 'histogram', 'Time that a reconcile takes'),
        ...BUCKETS.map((bound, index) => series(`${duration}_bucket`, `,le="${bound}"`, buckets[index] ?? 0)),
        series(`${duration}_bucket`, ',le="+Inf"', total),
        series(`${duration}_sum`, '', sumSeconds),
        series(`${duration}_count`, '', total),
        header('controller_reconciliations_running', 'gauge', 'Reconciles under way'),
        series('controller_reconciliations_running', '', running),
      ].join('')
    },
  }
}
