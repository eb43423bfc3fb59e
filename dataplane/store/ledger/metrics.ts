import { METRIC_PREFIX } from '#api/names.ts'
import { defineMetrics } from '../../observe/telemetry/metrics/area.ts'

/** Metrics of the ledger. The threads that record and the one that stores may share a registry. */
export const ledgerMetrics = defineMetrics((registry) => ({
  stored: registry.counter(`${METRIC_PREFIX}ledger_rows_stored_total`, 'Requests that the ledger has stored.').series(),
  waiting: registry.gauge(`${METRIC_PREFIX}ledger_rows_waiting`, 'Requests that wait for the ledger to store them.').series(),
  /** `full`: too many were waiting; `failed`: the store did not accept them. */
  dropped: registry.counter(`${METRIC_PREFIX}ledger_rows_dropped_total`, 'Requests that are missing in the ledger.', ['reason']),
  bodiesDropped: registry
    .counter(`${METRIC_PREFIX}ledger_bodies_dropped_total`, 'Requests that the ledger has without their bodies, because too many waited.')
    .series(),
}))
