import { exactlyOneOf, integer, object, ref, set, string, type Definitions } from '../../schema.ts'
import { duration } from '../shared.ts'

export const healthDefinitions: Definitions = {
  Health: object('Health of endpoints: outlier detection by responses, and checks by requests of the gateway. Not set: none.', {
    unhealthyCondition: ref(
      'CELExpression',
      'If true, the response is unhealthy, for example `response.code >= 500`. Default: a 5xx, a grpc-status other than 0, or no response. Without `eviction`, unhealthy responses only lower the score.',
    ),
    eviction: ref('BackendEviction'),
    active: ref('HealthCheck'),
  }),
  BackendEviction: object(
    'Conditions and duration of the eviction of an endpoint. One threshold suffices; without any, one unhealthy response evicts. If all endpoints are evicted, all are used.',
    {
      duration: duration('Base time of an eviction; multiplied by the number of consecutive evictions.', 1000, '3s'),
      restoreHealth: integer('Health score after the eviction. Not set: the score before it.', 0, 100),
      consecutiveFailures: integer('Number of consecutive unhealthy responses that evict; only a healthy response resets the count.', 0, 2147483647),
      healthThreshold: integer('An unhealthy response evicts if the health score was already below this value.', 0, 100),
      failurePercentage: object(
        'Evicts an endpoint with too large a share of unhealthy responses.',
        {
          threshold: integer('Percent of the responses of an interval that must be unhealthy.', 1, 100),
          interval: duration('Time after which counting begins anew.', 1000, '10s'),
          minRequests: integer('Responses that an interval must have.', 1, 1000000, { default: 50 }),
        },
        ['threshold'],
      ),
      maxEvictedPercent: integer('Percent of the endpoints that may be out until none is evicted any more; one always may be. Default: all.', 1, 100),
    },
  ),
  HealthCheck: object(
    'Checks of each endpoint by the gateway. One that fails them gets no requests, unless all are out.',
    {
      interval: duration('Time between two checks.', 1000, '3s'),
      jitter: duration('Most random time added to an interval. Default: a tenth of it.'),
      timeout: duration('Time for a check.', 1, '1s'),
      unhealthyThreshold: integer('Failures in a row that take it out.', 1, 1000, { default: 3 }),
      healthyThreshold: integer('Passes in a row that take it in.', 1, 1000, { default: 1 }),
      http: object(
        'A GET request.',
        {
          path: string('Path and query.', { minLength: 1, maxLength: 1024, pattern: '^/[!-~]*$' }),
          hostname: string('Host. Default: that of the backend.', {
            minLength: 1,
            maxLength: 253,
            pattern: '^[A-Za-z0-9.-]+(:[0-9]{1,5})?$',
          }),
          expectedStatuses: set(integer('Status code.', 200, 599), 'Default: 200.', 1, 100),
          expectedBody: string('Text that the body contains.', { minLength: 1, maxLength: 1024 }),
        },
        ['path'],
      ),
      tcp: object('A connection.', {}),
      grpc: object('gRPC health v1.', {
        service: string('Service. Default: the server.', { minLength: 1, maxLength: 253, pattern: '^[!-~]+$' }),
      }),
    },
    [],
    [exactlyOneOf('http', 'tcp', 'grpc')],
  ),
}
