import { quantile } from '#api/management/merge.ts'
import type { Series, SeriesPoint, Stats, StatsRow } from '#api/management/stats.ts'
import { METRIC_PREFIX } from '#api/names.ts'
import { Slice } from '../../runtime/cooperative.ts'
import type { FamilyDump } from '../../observe/telemetry/metrics/registry.ts'

/** Families of the metrics that the live numbers are made from. */
export const SAMPLED_FAMILIES: readonly string[] = [`${METRIC_PREFIX}request_duration_seconds`]

const STEP_SECONDS = 10
/** 15 minutes. */
const POINTS = 90
/** Nodes with a history. */
const MAX_HISTORIES = 256
const MAX_KEYS = 5000
const CACHE_MS = 1000
/** Requests, client errors and server errors come before the buckets. */
const HEAD = 3

interface Sample {
  readonly timeMs: number
  /** Cumulative counts by key. */
  readonly counts: ReadonlyMap<string, Float64Array>
}

/** Reads families of the metrics; one list per thread. */
export type ReadMetrics = (families: readonly string[]) => Promise<readonly (readonly FamilyDump[])[]>

/**
 * Numbers of requests per node over the last 15 minutes. They are differences of the counters of the metrics, which are read every 10 seconds: a request
 * costs nothing more.
 */
export class LiveStats {
  readonly #read: ReadMetrics
  readonly #now: () => number
  #bounds: readonly number[] = []
  /** The sample before the last one, and the last one. */
  #samples: [Sample, Sample]
  readonly #histories = new Map<string, Uint32Array>()
  #ticks = 0
  #timer: NodeJS.Timeout | undefined
  #cached: { readonly atMs: number; readonly stats: Promise<Stats> } | undefined

  constructor(read: ReadMetrics, now: () => number = Date.now) {
    this.#read = read
    this.#now = now
    const start = { timeMs: now(), counts: new Map<string, Float64Array>() }
    this.#samples = [start, start]
  }

  start(): void {
    this.#timer = setInterval(() => void this.tick().catch(() => undefined), STEP_SECONDS * 1000).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Adds a point to the histories. */
  async tick(): Promise<void> {
    const sample = await this.#sample()
    const [, last] = this.#samples
    this.#samples = [last, sample]
    const at = (this.#ticks++ % POINTS) * this.#stride
    for (const history of this.#histories.values()) history.fill(0, at, at + this.#stride)
    for (const [key, counts] of sample.counts) {
      const delta = difference(counts, last.counts.get(key))
      if (delta[0] === 0) continue
      this.#historyOf(key)?.set(delta, at)
    }
  }

  /** Numbers of the last 10 to 20 seconds. */
  stats(): Promise<Stats> {
    const atMs = this.#now()
    if (this.#cached === undefined || atMs - this.#cached.atMs >= CACHE_MS) this.#cached = { atMs, stats: this.#compute() }
    return this.#cached.stats
  }

  /** Before the first point, which comes after 10 seconds, the requests so far are one. */
  async series(key: string): Promise<Series> {
    if (this.#ticks === 0) {
      const { timeMs, bounds, rows } = await this.stats()
      const { requests, clientErrors, serverErrors, counts, p50Ms, p95Ms } = rows.find((row) => row.key === key) ?? pointOf(bounds, [])
      const points = [{ requests, clientErrors, serverErrors, counts, p50Ms, p95Ms }]
      return { key, endMs: timeMs, stepSeconds: STEP_SECONDS, bounds, points }
    }
    const history = this.#histories.get(key)
    const known = Math.min(this.#ticks, POINTS)
    const points: SeriesPoint[] = []
    for (let tick = this.#ticks - known; tick < this.#ticks; tick++) {
      const at = (tick % POINTS) * this.#stride
      points.push(pointOf(this.#bounds, history?.subarray(at, at + this.#stride) ?? new Uint32Array(this.#stride)))
    }
    return { key, endMs: this.#samples[1].timeMs, stepSeconds: STEP_SECONDS, bounds: [...this.#bounds], points }
  }

  get #stride(): number {
    return HEAD + this.#bounds.length + 1
  }

  async #compute(): Promise<Stats> {
    const now = await this.#sample()
    const [before] = this.#samples
    const windowSeconds = Math.max(1, (now.timeMs - before.timeMs) / 1000)
    const rows: StatsRow[] = []
    for (const [key, counts] of now.counts) {
      const delta = difference(counts, before.counts.get(key))
      if (delta[0] !== 0) rows.push({ key, requestsPerSecond: (delta[0] ?? 0) / windowSeconds, ...pointOf(this.#bounds, delta) })
    }
    return { timeMs: now.timeMs, windowSeconds, bounds: [...this.#bounds], rows }
  }

  /** The history of a node, which may replace that of a node without requests in the last 15 minutes. */
  #historyOf(key: string): Uint32Array | undefined {
    const known = this.#histories.get(key)
    if (known !== undefined) return known
    if (this.#histories.size >= MAX_HISTORIES) {
      const idle = [...this.#histories].find(([, history]) => history.every((count) => count === 0))
      if (idle === undefined) return undefined
      this.#histories.delete(idle[0])
    }
    const history = new Uint32Array(POINTS * this.#stride)
    this.#histories.set(key, history)
    return history
  }

  async #sample(): Promise<Sample> {
    const dumps = await this.#read(SAMPLED_FAMILIES)
    const counts = new Map<string, Float64Array>()
    const slice = new Slice()
    for (const family of dumps.flat()) {
      this.#bounds = family.bounds
      const place = (name: string): number => family.labels.indexOf(name)
      const at = { status: place('status'), listener: place('listener'), route: place('route'), backend: place('backend'), gateway: place('gateway') }
      const width = family.bounds.length + 3
      for (const [index, values] of family.series.entries()) {
        if (slice.isOver) await slice.next()
        const row = family.values.subarray(index * width, (index + 1) * width)
        const status = Number(values[at.status])
        for (const key of keysOf(values, at)) add(counts, key, row, status)
      }
    }
    return { timeMs: this.#now(), counts }
  }
}

interface LabelPlaces {
  readonly listener: number
  readonly route: number
  readonly backend: number
  readonly gateway: number
}

const UNKNOWN = 'unknown'

function keysOf(values: readonly string[], at: LabelPlaces): string[] {
  const [listener, route, backend, gateway] = [values[at.listener], values[at.route], values[at.backend], values[at.gateway]]
  const keys = ['total']
  if (listener !== undefined && listener !== UNKNOWN) keys.push(`listener ${gateway}.${listener}`)
  if (route !== undefined && route !== UNKNOWN) keys.push(`route ${route}`)
  if (backend !== undefined && backend !== UNKNOWN) keys.push(`backend ${backend}`)
  return keys
}

/** `row`: sum, count and buckets of a histogram. */
function add(counts: Map<string, Float64Array>, key: string, row: Float64Array, status: number): void {
  let own = counts.get(key)
  if (own === undefined) {
    if (counts.size >= MAX_KEYS) return
    counts.set(key, (own = new Float64Array(row.length + 1)))
  }
  const count = row[1] ?? 0
  own[0] = (own[0] ?? 0) + count
  if (status >= 400 && status < 500) own[1] = (own[1] ?? 0) + count
  // Without a response, `status` is NaN.
  else if (!(status < 500)) own[2] = (own[2] ?? 0) + count
  for (let i = 2; i < row.length; i++) own[i + 1] = (own[i + 1] ?? 0) + (row[i] ?? 0)
}

/** Differences of counts, at least 0: a worker that ended or a route that was deleted takes its counts with it. */
function difference(after: Float64Array, before: Float64Array | undefined): Float64Array {
  return before === undefined ? after : after.map((count, index) => Math.max(0, count - (before[index] ?? 0)))
}

function pointOf(bounds: readonly number[], [requests = 0, clientErrors = 0, serverErrors = 0, ...counts]: Iterable<number>): SeriesPoint {
  return { requests, clientErrors, serverErrors, counts, p50Ms: quantile(bounds, counts, 0.5), p95Ms: quantile(bounds, counts, 0.95) }
}
