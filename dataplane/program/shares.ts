import { isDivided } from '#api/budget.ts'
import { METRIC_PREFIX } from '#api/names.ts'
import type { Policy } from '#gen/config/types.ts'
import type { ConfigStore } from '../config/store.ts'
import type { Shares } from '../runtime/shares.ts'
import type { ShareKeeper } from './quota/keeper.ts'
import type { QuotaStream } from './quota/stream.ts'
import { SharedCells } from '../runtime/shared-cells.ts'
import type { Logging } from '../observe/telemetry/log.ts'
import type { Registry } from '../observe/telemetry/metrics/registry.ts'
import type { ProcessSettings } from './settings.ts'
import { showConnection } from './connection.ts'

/** Shares of budgets from the operator. */
export interface OperatorShares extends Shares {
  /** Connects as soon as the config has a budget of all replicas, so that its first requests do not wait for the connection. */
  follow(store: Pick<ConfigStore, 'subscribe'>): void
  /** Reports what was used last. */
  close(): Promise<void>
}

/** Makes the client of the operator's quota service; undefined: there is no operator. It connects when a budget needs it. */
export function createShares(
  settings: ProcessSettings,
  logging: Logging,
  registry: () => Registry | undefined,
  budgetCells?: SharedArrayBuffer,
): OperatorShares | undefined {
  const { xdsAddress: address, namespace, gateway, podName, podIp, nodeName, xdsTokenFile: tokenFile, xdsRootCa: rootCaFile } = settings
  if (address === undefined) return undefined
  const log = logging.logger('budgets')
  const cells = budgetCells && new SharedCells(budgetCells, { evicts: true })
  let client: Promise<{ readonly keeper: ShareKeeper; readonly stream: QuotaStream }> | undefined
  const start = async (): Promise<{ keeper: ShareKeeper; stream: QuotaStream }> => {
    const [{ QuotaStream }, { ShareKeeper }, { findShareMemory }] = await Promise.all([
      import('./quota/stream.ts'),
      import('./quota/keeper.ts'),
      import('../policy/budgets/ledger.ts'),
    ])
    const connected = registry()
      ?.gauge(`${METRIC_PREFIX}budget_shares_connected`, 'Whether the operator divides budgets among this replica and others.')
      .series()
    const keeper = new ShareKeeper({ findMemory: (name) => cells && findShareMemory(cells, name), onUrgent: () => stream.hurry() })
    const stream = new QuotaStream({
      address,
      node: { namespace, gateway, podName, podIps: podIp, nodeName },
      tokenFile,
      rootCaFile,
      keeper,
      ...showConnection({
        connected,
        onConnected: () => log.info('connected to the quota service of the operator', { address }),
        onDisconnected: (cause) => log.warn('no shares of budgets from the operator', { code: 'PX4024', cause }),
      }),
    })
    return { keeper, stream }
  }
  return {
    follow(store) {
      const unsubscribe = store.subscribe(({ policies }, changes) => {
        if (
          !changes
            .get('policy')
            ?.values()
            .some((key) => hasSharedBudget(policies.get(key)))
        )
          return
        unsubscribe()
        // A failure is that of the requests that need shares.
        ;(client ??= start()).catch(() => undefined)
      })
    },
    // Loaded on demand: most processes have no budget of all replicas.
    want: async (bucket, memory) => (await (client ??= start())).keeper.want(bucket, memory),
    close: async () => (await client)?.stream.close(),
  }
}

/** Whether a policy has a budget that the operator divides. */
const hasSharedBudget = (policy: Policy | undefined): boolean => policy?.traffic?.budgets?.some(isDivided) ?? false
