/**
 * A metrics registry. A family has a fixed list of label names; a series is one set of label values. Callers look a series up once
 * and keep it, so that counting is an addition to a field.
 */
import { encodeFamily } from './protobuf.ts'

export type ExpositionFormat = 'text' | 'openmetrics'

/** One set of label values. `value` of counters and gauges may be written to directly. */
export interface Series {
  value: number
}

export interface HistogramSeries {
  sum: number
  count: number
  /** Counts per bucket, not cumulative; the last one is +Inf. */
  readonly buckets: number[]
  observe(value: number): void
}

export interface Family<S> {
  readonly name: string
  /** Returns the series of these label values, in the order of the label names. Beyond `maxSeries`, returns the series `other`. */
  series(...values: string[]): S
  /** Number of series. */
  readonly size: number
  /** Removes series by the value of a label; no effect on a family without the label. A removed series can still be counted, but is not exposed. */
  drop(label: string, isGone: (value: string) => boolean): void
}

/** Default limit of series per family. Clients cannot choose label values, but config and statuses multiply. */
const MAX_SERIES = 10_000
/** Label value of the series for everything beyond the limit. */
export const OVERFLOW_LABEL = 'other'

/** How the values of a family in several workers become one: added up, or the greatest. `carried`: added up, and those of a worker that ended still count. */
type Merge = 'sum' | 'max' | 'carried'

/** The content of a family, for another thread. */
export interface FamilyDump {
  readonly kind: Kind
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
  readonly merge: Merge
  /** Of histograms. */
  readonly bounds: readonly number[]
  readonly series: readonly (readonly string[])[]
  /** One number per series; for histograms sum, count and each bucket. */
  readonly values: Float64Array
}

export interface Registry {
  counter(name: string, help: string, labels?: readonly string[]): Family<Series>
  gauge(name: string, help: string, labels?: readonly string[], merge?: Merge): Family<Series>
  histogram(name: string, help: string, bounds: readonly number[], labels?: readonly string[]): Family<HistogramSeries>
  /** Constant labels with the value 1. */
  info(name: string, help: string, labels: Readonly<Record<string, string>>): void
  /** Calls `drop` of every family. */
  drop(label: string, isGone: (value: string) => boolean): void
  /** Registers a function that runs before each exposition, to set gauges. */
  onCollect(collect: () => void): void
  /** Yields the exposition in pieces of some hundred lines, so that large scrapes do not block traffic. */
  expose(format: ExpositionFormat): Generator<string, void>
  /** Yields the exposition as length-delimited protobuf messages, one per family. */
  exposeProtobuf(): Generator<Buffer, void>
  /** The content of the families with series. `isScrape` false: without running the functions of `onCollect`. `names`: only these families. */
  dump(isScrape?: boolean, names?: readonly string[]): FamilyDump[]
  /** Adds the content of another registry; families are created as needed. `isPast`: of a thread that ended, whose gauges do not count. */
  add(dump: readonly FamilyDump[], isPast?: boolean): void
}

const SERIES_PER_PIECE = 100

type Kind = 'counter' | 'gauge' | 'histogram' | 'info'

class StoredFamily<S> implements Family<S> {
  readonly name: string
  readonly kind: Kind
  readonly help: string
  readonly labelNames: readonly string[]
  merge: Merge = 'sum'
  /** Of histograms. */
  bounds: readonly number[] = []
  readonly #maxSeries: number
  readonly #create: () => S
  /** Label text (`a="b",c="d"`) by label values. */
  readonly entries = new Map<string, { readonly labels: string; readonly values: readonly string[]; readonly series: S }>()

  constructor(kind: Kind, name: string, help: string, labels: readonly string[], maxSeries: number, create: () => S) {
    for (const part of [name, ...labels]) if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(part)) throw new Error(`bad metric or label name ${JSON.stringify(part)}`)
    if ((kind === 'counter' && !name.endsWith('_total')) || (kind === 'info' && !name.endsWith('_info'))) throw new Error(`${kind} ${name} lacks its suffix`)
    this.kind = kind
    this.name = name
    this.help = help
    this.labelNames = labels
    this.#maxSeries = maxSeries
    this.#create = create
  }

  get size(): number {
    return this.entries.size
  }

  get all(): Iterable<{ readonly values: readonly string[]; readonly series: S }> {
    return this.entries.values()
  }

  series(...values: string[]): S {
    if (values.length !== this.labelNames.length) throw new Error(`${this.name} has ${this.labelNames.length} labels, got ${values.length} values`)
    const key = values.join('\0')
    const known = this.entries.get(key)
    if (known !== undefined) return known.series
    if (this.entries.size >= this.#maxSeries && !values.every((value) => value === OVERFLOW_LABEL))
      return this.series(...this.labelNames.map(() => OVERFLOW_LABEL))
    const labels = this.labelNames.map((name, i) => `${name}="${escapeLabel(values[i] ?? '')}"`).join(',')
    const series = this.#create()
    this.entries.set(key, { labels, values, series })
    return series
  }

  drop(label: string, isGone: (value: string) => boolean): void {
    const index = this.labelNames.indexOf(label)
    if (index === -1) return
    for (const [key, { values }] of this.entries) if (isGone(values[index] ?? '')) this.entries.delete(key)
  }
}

export function createRegistry(options: { maxSeries?: number } = {}): Registry {
  const { maxSeries = MAX_SERIES } = options
  const families: StoredFamily<unknown>[] = []
  const collectors: (() => void)[] = []
  const add = <S>(kind: Kind, name: string, help: string, labels: readonly string[], create: () => S): StoredFamily<S> => {
    if (families.some((family) => family.name === name)) throw new Error(`metric ${name} exists already`)
    const family = new StoredFamily(kind, name, help, labels, maxSeries, create)
    families.push(family)
    return family
  }
  const create = ({ kind, name, help, labels, merge, bounds }: FamilyDump): StoredFamily<unknown> => {
    const family = add<unknown>(kind, name, help, labels, kind === 'histogram' ? () => createHistogramSeries(bounds) : createSeries)
    return Object.assign(family, { merge, bounds })
  }
  return {
    counter: (name, help, labels = []) => add('counter', name, help, labels, createSeries),
    gauge: (name, help, labels = [], merge = 'sum') => Object.assign(add('gauge', name, help, labels, createSeries), { merge }),
    histogram: (name, help, bounds, labels = []) =>
      Object.assign(
        add('histogram', name, help, labels, () => createHistogramSeries(bounds)),
        { bounds },
      ),
    info(name, help, labels) {
      add('info', name, help, Object.keys(labels), () => ({ value: 1 })).series(...Object.values(labels))
    },
    drop(label, isGone) {
      for (const family of families) family.drop(label, isGone)
    },
    onCollect: (collect) => void collectors.push(collect),
    *expose(format) {
      for (const collect of collectors) collect()
      for (const family of families) yield* exposeFamily(family, format)
      if (format === 'openmetrics') yield '# EOF\n'
    },
    *exposeProtobuf() {
      for (const collect of collectors) collect()
      for (const family of families)
        if (family.size > 0) yield encodeFamily({ name: family.name, kind: family.kind, help: family.help, labelNames: family.labelNames, series: family.all })
    },
    dump(isScrape = true, names) {
      if (isScrape) for (const collect of collectors) collect()
      return families.filter(({ name, size }) => size > 0 && names?.includes(name) !== false).map(dumpFamily)
    },
    add(dump, isPast = false) {
      for (const family of dump) {
        const isGauge = family.kind === 'gauge' || family.kind === 'info'
        if (isPast && isGauge && family.merge !== 'carried') continue
        addFamily(families.find(({ name }) => name === family.name) ?? create(family), family)
      }
    },
  }
}

const createSeries = (): Series => ({ value: 0 })

function dumpFamily(family: StoredFamily<unknown>): FamilyDump {
  const { kind, name, help, labelNames: labels, merge, bounds } = family
  const stride = strideOf(kind, bounds)
  const series: (readonly string[])[] = []
  const values = new Float64Array(family.size * stride)
  for (const { values: own, series: content } of family.all) {
    const at = series.push(own) * stride - stride
    if (kind !== 'histogram') values[at] = (content as Series).value
    else {
      const { sum, count, buckets } = content as HistogramSeries
      values.set([sum, count, ...buckets], at)
    }
  }
  return { kind, name, help, labels, merge, bounds, series, values }
}

function addFamily(family: StoredFamily<unknown>, { kind, merge, bounds, series, values }: FamilyDump): void {
  const stride = strideOf(kind, bounds)
  for (const [index, own] of series.entries()) {
    const content = family.series(...own)
    const at = index * stride
    const value = values[at] ?? 0
    if (kind === 'histogram') addHistogram(content as HistogramSeries, values.subarray(at, at + stride))
    else if (kind === 'info') (content as Series).value = value
    else if (merge === 'max') (content as Series).value = Math.max((content as Series).value, value)
    else (content as Series).value += value
  }
}

function addHistogram(series: HistogramSeries, [sum = 0, count = 0, ...buckets]: Float64Array): void {
  series.sum += sum
  series.count += count
  for (const [index, value] of buckets.entries()) series.buckets[index] = (series.buckets[index] ?? 0) + value
}

/** Sum and count come before the buckets. */
const strideOf = (kind: Kind, bounds: readonly number[]): number => (kind === 'histogram' ? bounds.length + 3 : 1)

export function createHistogramSeries(bounds: readonly number[]): HistogramSeries & { readonly bounds: readonly number[] } {
  const last = bounds.length
  return {
    bounds,
    sum: 0,
    count: 0,
    // Not cumulative: `observe` writes one bucket, and the exposition adds them up.
    buckets: Array.from({ length: last + 1 }, () => 0),
    observe(value) {
      let i = 0
      while (i < last && value > (bounds[i] as number)) i++
      this.buckets[i] = (this.buckets[i] as number) + 1
      this.sum += value
      this.count++
    },
  }
}

function* exposeFamily(family: StoredFamily<unknown>, format: ExpositionFormat): Generator<string, void> {
  if (family.size === 0) return
  const { name, kind } = family
  // OpenMetrics names the family without the suffix that its samples carry, and knows a type for info.
  const suffix = kind === 'counter' ? '_total' : kind === 'info' ? '_info' : ''
  const familyName = format === 'openmetrics' ? name.slice(0, name.length - suffix.length) : name
  const type = kind === 'info' && format === 'text' ? 'gauge' : kind
  let piece = `# HELP ${familyName} ${escapeHelp(family.help, format)}\n# TYPE ${familyName} ${type}\n`
  let pending = 0
  for (const { labels, series } of family.entries.values()) {
    piece +=
      kind === 'histogram'
        ? histogramLines(name, labels, series as ReturnType<typeof createHistogramSeries>, format)
        : sampleLine(name, labels, series as Series)
    if (++pending < SERIES_PER_PIECE) continue
    yield piece
    piece = ''
    pending = 0
  }
  if (piece !== '') yield piece
}

function sampleLine(name: string, labels: string, series: Series): string {
  return labels === '' ? `${name} ${formatNumber(series.value)}\n` : `${name}{${labels}} ${formatNumber(series.value)}\n`
}

function histogramLines(name: string, labels: string, series: ReturnType<typeof createHistogramSeries>, format: ExpositionFormat): string {
  const prefix = labels === '' ? '' : `${labels},`
  const braces = labels === '' ? '' : `{${labels}}`
  let lines = ''
  let count = 0
  for (const [i, bound] of series.bounds.entries()) {
    count += series.buckets[i] ?? 0
    lines += `${name}_bucket{${prefix}le="${formatBound(bound, format)}"} ${count}\n`
  }
  return `${lines}${name}_bucket{${prefix}le="+Inf"} ${series.count}\n${name}_sum${braces} ${formatNumber(series.sum)}\n${name}_count${braces} ${series.count}\n`
}

/** OpenMetrics wants canonical floats as bounds: `1.0`, not `1`. */
function formatBound(bound: number, format: ExpositionFormat): string {
  return format === 'openmetrics' && Number.isInteger(bound) ? `${bound}.0` : String(bound)
}

function formatNumber(value: number): string {
  if (value === Infinity) return '+Inf'
  return value === -Infinity ? '-Inf' : String(value)
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function escapeHelp(help: string, format: ExpositionFormat): string {
  const escaped = help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
  return format === 'openmetrics' ? escaped.replaceAll('"', '\\"') : escaped
}
