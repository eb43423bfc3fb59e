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
      maxEvictedPercent: integer(
        'Percent of the endpoints that may be evicted or fail their checks: no further one is evicted, except that one always may be. Default: all. Not for LLM providers.',
        1,
        100,
      ),
    },
  ),
  HealthCheck: object(
    'Checks of each endpoint by requests of the gateway. An endpoint whose checks fail receives no requests, unless all endpoints are out. Not for dynamicForwardProxy.',
    {
      interval: duration('Time between two checks.', 1000, '3s'),
      jitter: duration('Random time, up to this, before the first check and in addition to each interval. Default: a tenth of the interval.'),
      timeout: duration('Time for a check until the end of the response; then it fails.', 1, '1s'),
      unhealthyThreshold: integer('Failed checks in a row after which the endpoint is out.', 1, 1000, { default: 3 }),
      healthyThreshold: integer('Passed checks in a row after which it is used again.', 1, 1000, { default: 1 }),
      http: object(
        'GET, with TLS, credentials and HTTP version of requests to the backend. Redirects are not followed.',
        {
          path: string('Path and query.', { minLength: 1, maxLength: 1024, pattern: '^/[!-~]*$' }),
          hostname: string('Host of the request. Default: that of the backend, or the address of the endpoint.', {
            minLength: 1,
            maxLength: 253,
            pattern: '^[A-Za-z0-9.-]+(:[0-9]{1,5})?$',
          }),
          expectedStatuses: set(integer('Status code.', 200, 599), 'Status codes of healthy endpoints. Default: 200.', 1, 100),
          expectedBody: string('Text that the body contains, of at most 64 KiB.', { minLength: 1, maxLength: 1024 }),
        },
        ['path'],
      ),
      tcp: object('A connection, with TLS if the backend has it.', {}),
      grpc: object('`Check` of gRPC health v1: status SERVING.', {
        service: string('Name of the service. Default: the whole server.', { minLength: 1, maxLength: 253, pattern: '^[!-~]+$' }),
      }),
    },
    [],
    [exactlyOneOf('http', 'tcp', 'grpc')],
  ),
}
