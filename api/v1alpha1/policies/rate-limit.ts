import { atLeastOneOf, choice, exactlyOneOf, integer, list, object, ref, type Definitions } from '../../schema.ts'

export const rateLimitDefinitions: Definitions = {
  RateLimits: object(
    'Rate limits. A request over a limit is answered 429 and not forwarded. `local` and `global` merge separately with those of other policies.',
    {
      local: list(
        ref('LocalRateLimit'),
        'Limits counted in this replica only, without any call. All entries must admit the request; each entry has one budget for everything that its target serves.',
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
        'LLM tokens (input and output) per unit. They are charged when the response has ended, so the request that crosses the budget succeeds and later ones get 429. Other traffic is not limited.',
        1,
        4294967295,
      ),
      unit: choice(['Seconds', 'Minutes', 'Hours'], 'Length of the window.'),
      burst: integer('Allowance above the rate: the budget holds requests (or tokens) plus burst.', 0, 4294967295),
    },
    ['unit'],
    [exactlyOneOf('requests', 'tokens')],
  ),
  GlobalRateLimit: object(
    "Limits kept by an external rate limit service (Envoy's `envoy.service.ratelimit.v3.RateLimitService`), shared by all replicas. When the service cannot be reached, requests are answered 500 unless failureMode says otherwise.",
    {
      backendRef: ref('BackendObjectReference', 'The rate limit service: a Service or a ProxyBackend.'),
      domain: ref('ShortString', 'Tells the applications of one rate limit service apart.'),
      descriptors: list(ref('RateLimitDescriptor'), 'What is counted. The service limits on all of them.', 1, 16),
      failureMode: choice(['FailClosed', 'FailOpen'], 'What happens to requests that the service cannot be asked about: 500, or they pass.', {
        default: 'FailClosed',
      }),
    },
    ['backendRef', 'domain', 'descriptors'],
  ),
  RateLimitDescriptor: object(
    'One counter of the rate limit service.',
    {
      entries: list(
        ref('RateLimitDescriptorEntry'),
        'Key and value pairs that name the counter. One that fails drops the whole descriptor; when none is left, the service is not asked.',
        1,
        16,
      ),
      unit: choice(['Requests', 'Tokens'], 'Cost of a request: 1, or the LLM tokens it took, charged when the response has ended.', { default: 'Requests' }),
    },
    ['entries'],
  ),
  RateLimitDescriptorEntry: object(
    'A key with a computed value.',
    {
      name: ref('TinyString', 'Key.'),
      expression: ref('CELExpression', 'Value, as a string; for example `source.address` for one counter per client address.'),
    },
    ['name', 'expression'],
  ),
}
