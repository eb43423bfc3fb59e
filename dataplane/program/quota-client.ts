import { METRIC_PREFIX } from '#api/names.ts'
import { indexPolicies } from '../config/merge.ts'
import type { ConfigSnapshot } from '../config/store.ts'
import { Destinations } from '../net/destination/destinations.ts'
import { findQuotaMemory } from '../policy/budgets/ledger.ts'
import { QuotaBuckets } from './quota/buckets.ts'
import { QuotaServiceStream } from './quota/service.ts'
import type { QuotaBucket, QuotaMemory, Quotas, QuotaServiceRef } from '../runtime/quotas.ts'
import { SharedCells } from '../runtime/shared-cells.ts'
import type { Logger } from '../observe/telemetry/log.ts'
import { createRegistry, type Registry } from '../observe/telemetry/metrics/registry.ts'
import { createPool } from '../net/upstream/pools.ts'
import { showConnection } from './connection.ts'

interface Service {
  readonly ref: QuotaServiceRef
  readonly buckets: QuotaBuckets
  readonly stream: QuotaServiceStream
}

/** Streams to the rate limit quota services of the config, one for each backend, domain and interval. */
export class QuotaClient implements Quotas {
  readonly #destinations = new Destinations(createPool)
  readonly #services = new Map<string, Service>()
  readonly #log: Logger
  readonly #cells: SharedCells | undefined
  readonly #metrics: ReturnType<typeof metricsOf>
  #snapshot: ConfigSnapshot | undefined

  /** @param memory counters of all workers; undefined: `assign` gets the memory of each */
  constructor(log: Logger, registry: Registry = createRegistry(), memory?: SharedArrayBuffer) {
    this.#log = log
    this.#metrics = metricsOf(registry)
    this.#cells = memory && new SharedCells(memory, { evicts: true })
  }

  assign(bucket: QuotaBucket, memory?: () => QuotaMemory | undefined): Promise<boolean> {
    const key = JSON.stringify(bucket.service)
    let service = this.#services.get(key)
    if (service === undefined) this.#services.set(key, (service = this.#open(bucket.service)))
    return service.buckets.assign(bucket, memory)
  }

  /** Takes a version of the config. Streams that no budget uses are closed. */
  update(snapshot: ConfigSnapshot): void {
    const before = this.#snapshot
    this.#snapshot = snapshot
    if (snapshot.policies !== before?.policies) this.#closeUnused(snapshot)
    this.#destinations.update(snapshot, indexPolicies(snapshot.policies))
    for (const { ref, stream } of this.#services.values()) {
      this.#destinations.forPolicy(ref.backendRef)
      stream.update()
    }
    this.#destinations.retain([])
  }

  async close(): Promise<void> {
    await Promise.all(this.#services.values().map(({ stream }) => stream.close()))
    this.#destinations.close()
  }

  #closeUnused({ policies }: ConfigSnapshot): void {
    const used = new Set<string>()
    for (const { traffic } of policies.values())
      for (const { quotaService } of traffic?.budgets ?? []) if (quotaService !== undefined) used.add(nameOf(quotaService))
    for (const [key, { ref, stream }] of this.#services) {
      if (used.has(nameOf(ref))) continue
      this.#services.delete(key)
      void stream.close()
    }
  }

  #open(ref: QuotaServiceRef): Service {
    const destination = this.#destinations.forPolicy(ref.backendRef)
    const fields = { service: destination.name, domain: ref.domain }
    const ignored = this.#metrics.ignored.series(fields.service, fields.domain)
    const buckets = new QuotaBuckets({
      findMemory: (counter) => this.#cells && findQuotaMemory(this.#cells, counter),
      onUrgent: () => stream.hurry(),
    })
    const stream = new QuotaServiceStream({
      service: ref,
      destination,
      buckets,
      ...showConnection({
        connected: this.#metrics.connected.series(fields.service, fields.domain),
        onConnected: () => this.#log.info('a rate limit quota service responds', fields),
        onDisconnected: (cause) => this.#log.warn('no assignments from a rate limit quota service', { code: 'PX4040', ...fields, cause }),
      }),
      onIgnored: (count) => void (ignored.value += count),
    })
    return { ref, buckets, stream }
  }
}

/** Streams of one backend and domain; intervals of budgets may differ. */
const nameOf = ({ backendRef, domain }: Pick<QuotaServiceRef, 'backendRef' | 'domain'>): string => JSON.stringify([backendRef, domain])

const metricsOf = (registry: Registry) => ({
  connected: registry.gauge(`${METRIC_PREFIX}budget_quota_connected`, 'Whether a rate limit quota service responds.', ['service', 'domain']),
  ignored: registry.counter(
    `${METRIC_PREFIX}budget_quota_ignored_total`,
    'Actions of rate limit quota services on buckets that are not in use, or that the protocol does not have.',
    ['service', 'domain'],
  ),
})
