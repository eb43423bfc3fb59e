import { parseDuration } from '#api/duration.ts'
import type { FaultAbort, FaultDelay, FaultInjection } from '#gen/config/types.ts'
import { setLogField } from '../../observe/telemetry/access-log/fields.ts'
import { defineMetrics, ROUTE_LABELS, routeValues } from '../../observe/telemetry/metrics/area.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import type { PolicyState } from '../state.ts'

const faultMetrics = defineMetrics((registry) => registry.counter('proxy_faults_injected_total', 'Faults of faultInjection.', ['kind', ...ROUTE_LABELS]))

/**
 * Delays requests and aborts them with a status, each for a share of the requests (traffic.md §8.19). The upstream is not called for an aborted request.
 *
 * @throws ProxyError FAULT_INJECTED, with the configured status; REQUEST_TIMEOUT (504) if the delay outlasts the timeout of the request.
 * @example
 * traffic:
 *   faultInjection:
 *     delay: { duration: 2s, percent: 10 }
 *     abort: { status: 503, fraction: { numerator: 1, denominator: 1000 } }
 *     when: request.headers["x-test"] == "1"
 */
export function compileFaultInjection({ delay, abort }: FaultInjection, { registry }: Pick<PolicyState, 'registry'>, random = Math.random): Policy {
  const delayMs = delay === undefined ? 0 : (parseDuration(delay.duration) ?? 0)
  const [delayShare, abortShare] = [shareOf(delay), shareOf(abort)]
  const row = { status: abort?.status ?? 503, ...(abort?.grpcStatus !== undefined && { grpc: abort.grpcStatus }) }
  const abortRequest = (exchange: Exchange, fault: string): never => {
    faultMetrics(registry).series('abort', ...routeValues(exchange)).value++
    setLogField(exchange, 'proxy.fault', fault)
    throw new ProxyError('FAULT_INJECTED', { row })
  }
  return withSides({
    request(exchange): Promise<void> | void {
      const isDelayed = random() < delayShare
      const isAborted = random() < abortShare
      if (!isDelayed) return isAborted ? abortRequest(exchange, 'abort') : undefined
      faultMetrics(registry).series('delay', ...routeValues(exchange)).value++
      setLogField(exchange, 'proxy.fault', 'delay')
      const delayed = wait(exchange, delayMs)
      return isAborted ? delayed.then(() => abortRequest(exchange, 'delay,abort')) : delayed
    },
  })
}

/** The share of requests of a fault; 0 without one. */
function shareOf(fault: FaultDelay | FaultAbort | undefined): number {
  if (fault === undefined) return 0
  const { percent = 100, fraction } = fault
  return fraction === undefined ? percent / 100 : fraction.numerator / (fraction.denominator ?? 100)
}

/** Waits, but neither longer than the timeout of the request nor for a client that has disconnected. */
function wait(exchange: Exchange, ms: number): Promise<void> {
  const leftMs = exchange.deadlineAtMs === undefined ? Infinity : exchange.deadlineAtMs - performance.now()
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => (ms < leftMs ? resolve() : reject(new ProxyError('REQUEST_TIMEOUT'))), Math.max(0, Math.min(ms, leftMs)))
    exchange.onAbort((reason) => {
      clearTimeout(timer)
      reject(reason)
    })
  })
}
