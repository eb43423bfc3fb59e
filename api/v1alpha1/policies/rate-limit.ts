import { atLeastOneOf, choice, exactlyOneOf, integer, list, object, ref, type Definitions } from '../../schema.ts'
import { whenProtecting } from '../shared.ts'

export const rateLimitDefinitions: Definitions = {
  RateLimits: object(
    'Rate limits. A request over a limit is rejected with 429. `local` and `global` merge separately with those of other policies.',
    {
      local: list(
        ref('LocalRateLimit'),
        'Limits counted in this replica only, without any call. All entries must admit the request; each entry has one budget for all traffic of its target, or one for each value of `key`.',
        1,
        16,
      ),
      global: ref('GlobalRateLimit'),
    },
    [],
    [atLeastOneOf('local', 'global')],
  ),
  LocalRateLimit: object(
    'One budget: exactly one of requests, tokens. It starts full and is refilled once per unit. Responses carry x-ratelimit-limit, -remaining and -reset.',
    {
      requests: integer('Requests per unit.', 1, 4294967295),
      tokens: integer(
        'LLM tokens (input and output) per unit. They are charged when the response has ended, so the request that exceeds the budget succeeds and later ones are rejected with 429. Other traffic is not limited.',
        1,
        4294967295,
      ),
      unit: choice(['Seconds', 'Minutes', 'Hours'], 'Length of the window.'),
      burst: integer('Allowance above the rate: the budget holds requests (or tokens) plus burst.', 0, 4294967295),
      key: ref(
        'CELExpression',
        'One budget for each value of this expression, as a string; for example `jwt.sub`. With `mcp.tool` in it, calls of MCP tools are counted and nothing else. Requests for which it fails or is null share one budget. At most 10,000 keys of an entry are counted at once; beyond it the key that was unused for the longest time gets a new budget.',
      ),
      when: whenProtecting,
    },
    ['unit'],
    [exactlyOneOf('requests', 'tokens')],
  ),
  GlobalRateLimit: object(
    "Limits kept by an external rate limit service (Envoy's `envoy.service.ratelimit.v3.RateLimitService`), shared by all replicas. If the service cannot be reached, requests fail with 500 unless failureMode is FailOpen.",
    {
      backendRef: ref('BackendObjectReference', 'The rate limit service: a Service or a ProxyBackend.'),
      domain: ref('ShortString', 'Domain of the counters: distinguishes the applications that use one rate limit service.'),
      descriptors: list(ref('RateLimitDescriptor'), 'Counters. The service applies the limits of all of them.', 1, 16),
      failureMode: choice(
        ['FailClosed', 'FailOpen'],
        'Handling of requests if the service cannot be reached. FailClosed fails them with 500, FailOpen forwards them.',
        {
          default: 'FailClosed',
        },
      ),
      when: whenProtecting,
    },
    ['backendRef', 'domain', 'descriptors'],
  ),
  RateLimitDescriptor: object(
    'One counter of the rate limit service.',
    {
      entries: list(
        ref('RateLimitDescriptorEntry'),
        'Key and value pairs that name the counter. If one fails, the descriptor is omitted; without descriptors, the service is not called.',
        1,
        16,
      ),
      unit: choice(['Requests', 'Tokens'], 'Cost of a request: 1, or the LLM tokens that it used, charged when the response has ended.', {
        default: 'Requests',
      }),
    },
    ['entries'],
  ),
  RateLimitDescriptorEntry: object(
    'A key with a computed value.',
    {
      name: ref('TinyString', 'Key.'),
      expression: ref(
        'CELExpression',
        'Value, as a string; for example `source.address` for one counter per client address. With `mcp.tool` in it, calls of MCP tools are counted and nothing else.',
      ),
    },
    ['name', 'expression'],
  ),
}
