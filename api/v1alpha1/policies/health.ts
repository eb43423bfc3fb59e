import { integer, object, ref, type Definitions } from '../../schema.ts'
import { duration } from '../shared.ts'

export const healthDefinitions: Definitions = {
  Health: object('Outlier detection: each response moves the health score (0 to 100) of its endpoint, and a bad one can be evicted. Not set: none is.', {
    unhealthyCondition: ref(
      'CELExpression',
      'If true, the response is unhealthy, for example `response.code >= 500`. Default: a 5xx, a grpc-status other than 0, or no response. Without `eviction`, unhealthy responses only lower the score.',
    ),
    eviction: ref('BackendEviction'),
  }),
  BackendEviction: object(
    'Conditions and duration of the eviction of an endpoint. Either threshold suffices; with neither, one unhealthy response evicts. If all endpoints are evicted, all are used.',
    {
      duration: duration('Base time of an eviction; multiplied by the number of consecutive evictions.', 1000, '3s'),
      restoreHealth: integer('Health score after the eviction. Not set: the score before it.', 0, 100),
      consecutiveFailures: integer('Number of consecutive unhealthy responses that evict; only a healthy response resets the count.', 0, 2147483647),
      healthThreshold: integer('An unhealthy response evicts if the health score was already below this value.', 0, 100),
    },
  ),
}
