import { METRIC_PREFIX } from '#api/names.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { defineMetrics, ROUTE_LABELS, routeValues, UNKNOWN } from '../../observe/telemetry/metrics/area.ts'
import type { Registry } from '../../observe/telemetry/metrics/registry.ts'

/** Methods of A2A 1.0 and 0.3. All others are counted as `other`. */
const methods = new Set([
  'GetAgentCard',
  'SendMessage',
  'SendStreamingMessage',
  'GetTask',
  'ListTasks',
  'CancelTask',
  'SubscribeToTask',
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'DeleteTaskPushNotificationConfig',
  'GetExtendedAgentCard',
  'message/send',
  'message/stream',
  'tasks/get',
  'tasks/list',
  'tasks/cancel',
  'tasks/resubscribe',
  'tasks/pushNotificationConfig/set',
  'tasks/pushNotificationConfig/get',
  'tasks/pushNotificationConfig/list',
  'tasks/pushNotificationConfig/delete',
  'agent/getAuthenticatedExtendedCard',
])

const a2aMetrics = defineMetrics((registry) =>
  registry.counter(`${METRIC_PREFIX}a2a_responses_total`, 'Responses of A2A agents.', ['method', 'outcome', ...ROUTE_LABELS]),
)

/** Counts the response to a request. Clients choose methods, so that unknown ones share a label. */
export function countResponse(registry: Registry, exchange: Exchange, method: string | undefined, outcome: 'success' | 'error'): void {
  const label = method === undefined ? UNKNOWN : methods.has(method) ? method : 'other'
  a2aMetrics(registry).series(label, outcome, ...routeValues(exchange)).value++
}
