import type { PluginMetrics } from '#api/plugin/index.ts'
import type { MetricSample } from './messages.ts'

export const METRIC_NAME = /^[a-z][a-z0-9_]{0,62}$/
export const MAX_DETAIL_LENGTH = 64
/** Samples that wait to be sent; further ones are dropped. */
export const MAX_SAMPLES = 1000

/** Collects the metrics of a plugin in its thread. Counts of one series become one sample. */
export class MetricCollector implements PluginMetrics {
  readonly #counts = new Map<string, MetricSample & { amount: number }>()
  readonly #values: MetricSample[] = []
  readonly #onFirst: () => void

  /** @param onFirst called when samples start to wait */
  constructor(onFirst: () => void) {
    this.#onFirst = onFirst
  }

  count(event: string, { by = 1, detail = '' }: Parameters<PluginMetrics['count']>[1] = {}): void {
    const sample = createSample('count', event, by, detail)
    if (by < 0) throw new TypeError(`metrics.count: by is ${by}; counters do not decrease`)
    const key = `${event} ${sample.detail}`
    const waiting = this.#counts.get(key)
    if (waiting !== undefined) waiting.amount += by
    else if (this.#reserve()) this.#counts.set(key, sample)
  }

  observe(value: string, amount: number, { detail = '' }: Parameters<PluginMetrics['observe']>[2] = {}): void {
    const sample = createSample('value', value, amount, detail)
    if (this.#reserve()) this.#values.push(sample)
  }

  /** Returns and removes the samples that wait. */
  take(): readonly MetricSample[] {
    const samples = [...this.#counts.values(), ...this.#values]
    this.#counts.clear()
    this.#values.length = 0
    return samples
  }

  #reserve(): boolean {
    const size = this.#counts.size + this.#values.length
    if (size === 0) this.#onFirst()
    return size < MAX_SAMPLES
  }
}

function createSample(kind: MetricSample['kind'], name: string, amount: number, detail: string): MetricSample & { amount: number } {
  if (typeof name !== 'string' || !METRIC_NAME.test(name))
    throw new TypeError(`metrics: ${JSON.stringify(name)} is no name of a metric; use at most 63 lower-case letters, digits and _`)
  if (!Number.isFinite(amount)) throw new TypeError(`metrics: ${String(amount)} of ${name} is not a finite number`)
  if (typeof detail !== 'string') throw new TypeError(`metrics: detail of ${name} is not a string`)
  return { kind, name, detail: detail.slice(0, MAX_DETAIL_LENGTH), amount }
}
