import { integer, object, ref, type Definitions } from '../../schema.ts'
import { duration } from '../shared.ts'

export const healthDefinitions: Definitions = {
  Health: object(
    'Passive health checking: each response moves the health score of its endpoint (an exponentially weighted mean of successes, 0 to 100), and a bad endpoint can be evicted for a while. Without this policy nothing is evicted.',
    {
      unhealthyCondition: ref(
        'CELExpression',
        'True means that a response is unhealthy, for example `response.code >= 500`. Default: any 5xx and every connection failure; that lowers the score but does not evict by itself.',
      ),
      eviction: ref('BackendEviction'),
    },
  ),
  BackendEviction: object(
    'When and how long an endpoint is taken out. Either threshold suffices; with neither, one unhealthy response evicts. When all endpoints are evicted, they are used all the same.',
    {
      duration: duration('Base time of an eviction; multiplied by the number of evictions in a row.', 1000, '3s'),
      restoreHealth: integer('Health score on return. Not set: the score that it had when evicted.', 0, 100),
      consecutiveFailures: integer('Unhealthy responses in a row that evict; only a healthy one ends the row.', 0, 2147483647),
      healthThreshold: integer('An unhealthy response evicts when the health score was below this already.', 0, 100),
    },
  ),
}
