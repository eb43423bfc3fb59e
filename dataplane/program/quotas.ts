import type { ConfigSnapshot, ConfigStore } from '../config/store.ts'
import type { Quotas } from '../runtime/quotas.ts'
import type { Logging } from '../observe/telemetry/log.ts'
import type { Registry } from '../observe/telemetry/metrics/registry.ts'
import type { QuotaClient } from './quota-client.ts'

/** Assignments of rate limit quota services that budgets name. */
export interface ServiceQuotas extends Quotas {
  /** Services are found in the config of the store. */
  follow(store: Pick<ConfigStore, 'snapshot' | 'subscribe'>): void
  /** Reports what was used last. */
  close(): Promise<void>
}

/** Makes the client of all rate limit quota services except the operator. It connects to one when a budget needs it. */
export function createQuotas(logging: Logging, registry: () => Registry | undefined, budgetCells?: SharedArrayBuffer): ServiceQuotas {
  let snapshot: ConfigSnapshot | undefined
  let client: Promise<QuotaClient> | undefined
  // Loaded on demand: a main thread with workers has no other use for the code of upstream connections.
  const start = async (): Promise<QuotaClient> => {
    const { QuotaClient } = await import('./quota-client.ts')
    const made = new QuotaClient(logging.logger('budgets'), registry(), budgetCells)
    if (snapshot !== undefined) made.update(snapshot)
    return made
  }
  return {
    follow(store) {
      snapshot = store.snapshot()
      store.subscribe((next) => {
        snapshot = next
        void client?.then((made) => made.update(next))
      })
    },
    assign: async (bucket, memory) => (await (client ??= start())).assign(bucket, memory),
    close: async () => (await client)?.close(),
  }
}
