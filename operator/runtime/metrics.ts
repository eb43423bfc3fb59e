import { METRIC_PREFIX } from '#api/names.ts'

/** A number that is read at each scrape. */
export type Gauge = readonly [name: string, type: 'counter' | 'gauge', help: string, value: number]

type ReconcileResult = 'success' | 'error'

/** Counts reconciles of one controller (operator.md §7.1). */
export interface ReconcileMetrics {
  /** Runs `work` and counts how it ended; rejects as it does. */
  measure(namespace: string, name: string, work: () => Promise<void>): Promise<void>
  /** Forgets the series of objects, by their keys `<namespace>/<name>`, that do not exist. */
  retain(exists: (key: string) => boolean): void
}

type Controller = 'gateway' | 'gatewayclass' | 'mcpserver'

/** Counters of one controller. */
interface Tally {
  readonly counts: Map<string, Record<ReconcileResult, number>>
  readonly buckets: number[]
  running: number
  total: number
  sumSeconds: number
}

/** Upper bounds, in seconds. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

const header = (name: string, type: string, help: string): string => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`

export function renderGauges(gauges: readonly Gauge[], prefix = METRIC_PREFIX): string {
  return gauges.map(([name, type, help, value]) => `${header(prefix + name, type, help)}${prefix}${name} ${value}\n`).join('')
}

/** Metrics of the process, with the names of Prometheus client libraries. Enabled by PROXY_ENABLE_BUILTIN_DEFAULT_METRICS. */
export function renderProcess(): string {
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  const gauges: readonly Gauge[] = [
    ['process_cpu_seconds_total', 'counter', 'CPU time, of user and system', (user + system) / 1e6],
    ['process_start_time_seconds', 'gauge', 'Start of the process, since the epoch', Math.round(Date.now() / 1000 - process.uptime())],
    ['process_resident_memory_bytes', 'gauge', 'Resident memory', rss],
    ['nodejs_heap_size_used_bytes', 'gauge', 'Heap in use', heapUsed],
    ['nodejs_heap_size_total_bytes', 'gauge', 'Heap', heapTotal],
    ['nodejs_external_memory_bytes', 'gauge', 'Memory of objects outside of the heap', external],
  ]
  return renderGauges(gauges, '')
}

/** @param now milliseconds, monotonic */
export function createReconcileMetrics(now: () => number): { of(controller: Controller): ReconcileMetrics; render(): string } {
  const tallies = new Map<Controller, Tally>()
  return {
    of(controller) {
      const tally: Tally = { counts: new Map(), buckets: BUCKETS.map(() => 0), running: 0, total: 0, sumSeconds: 0 }
      tallies.set(controller, tally)
      return countOn(tally, now)
    },
    render() {
      const known = [...tallies]
      const duration = `${METRIC_PREFIX}controller_reconcile_duration_seconds`
      const total = `${METRIC_PREFIX}controller_reconciliations_total`
      const running = `${METRIC_PREFIX}controller_reconciliations_running`
      const series = (name: string, controller: string, labels: string, value: number): string => `${name}{controller="${controller}"${labels}} ${value}\n`
      return [
        header(total, 'counter', 'Reconciles of an object, by how they ended'),
        ...known.flatMap(([controller, { counts }]) =>
          [...counts].flatMap(([key, count]) => {
            const [namespace, name] = key.split('/')
            return (['success', 'error'] as const).map((result) =>
              series(total, controller, `,name="${name}",namespace="${namespace}",result="${result}"`, count[result]),
            )
          }),
        ),
        header(duration, 'histogram', 'Time that a reconcile takes'),
        ...known.flatMap(([controller, tally]) => [
          ...BUCKETS.map((bound, index) => series(`${duration}_bucket`, controller, `,le="${bound}"`, tally.buckets[index] ?? 0)),
          series(`${duration}_bucket`, controller, ',le="+Inf"', tally.total),
          series(`${duration}_sum`, controller, '', tally.sumSeconds),
          series(`${duration}_count`, controller, '', tally.total),
        ]),
        header(running, 'gauge', 'Reconciles under way'),
        ...known.map(([controller, tally]) => series(running, controller, '', tally.running)),
      ].join('')
    },
  }
}

function countOn(tally: Tally, now: () => number): ReconcileMetrics {
  return {
    async measure(namespace, name, work) {
      const startedAt = now()
      const key = `${namespace}/${name}`
      tally.running += 1
      let result: ReconcileResult = 'error'
      try {
        await work()
        result = 'success'
      } finally {
        tally.running -= 1
        const seconds = (now() - startedAt) / 1000
        tally.total += 1
        tally.sumSeconds += seconds
        BUCKETS.forEach((bound, index) => {
          if (seconds <= bound) tally.buckets[index] = (tally.buckets[index] ?? 0) + 1
        })
        const count = tally.counts.get(key) ?? { success: 0, error: 0 }
        count[result] += 1
        tally.counts.set(key, count)
      }
    },
    retain(exists) {
      for (const key of tally.counts.keys()) if (!exists(key)) tally.counts.delete(key)
    },
  }
}
