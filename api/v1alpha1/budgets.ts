import { DURATION_PATTERN } from '../duration.ts'
import { anyJson, boolean, choice, exactlyOneOf, integer, list, map, object, ref, string, type Definitions } from '../schema.ts'
import { duration, usd } from './shared.ts'

const NAME = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'

export const budgetDefinitions: Definitions = {
  Budget: object(
    'A budget of money, LLM tokens or requests for each value of a key. `scope` and `store` say whether it holds for each replica or for several together. What was spent is kept over changes of the policy.',
    {
      name: string('Name, unique in the list; shown to clients that exceed the budget, in logs and metrics.', { minLength: 1, maxLength: 63, pattern: NAME }),
      parent: string('Name of another budget of the list. A request that is charged to this budget is charged to the parent too.', {
        minLength: 1,
        maxLength: 63,
        pattern: NAME,
      }),
      key: ref(
        'CELExpression',
        'One budget for each value of this expression, as a string; for example `apiKey.metadata.team`. Use a value that clients cannot choose. Default: one budget for all requests. At most 10,000 keys are counted at once; beyond it the key that was unused for the longest time gets a new budget.',
      ),
      onMissingKey: choice(['Reject', 'Ignore'], 'Handling of requests for which `key` fails or is null. Reject: 403. Ignore: the request is not charged.', {
        default: 'Reject',
      }),
      limits: list(ref('BudgetLimit'), 'Limits. All must admit the request. Of limits with the same unit and window, the lowest holds.', 1, 8),
      models: ref(
        'CELExpression',
        'Restricts the budget to LLM requests for which this expression is true; for example `llm.requestModel.startsWith("gpt")`. One that fails is true. Default: all requests.',
      ),
      onExceeded: anyJson(
        'Handling of requests that exceed the budget. `Reject` (default): 429. `Audit`: the request is admitted; metrics and logs report it. `{model: small}`: LLM requests use this model instead, others are admitted.',
      ),
      alertAt: list(integer('Percentage.', 1, 100), 'Percentages of a limit at which a warning is logged and counted, once per window.', 1, 8),
      unpriced: choice(
        ['Reject', 'Allow'],
        'Handling of LLM requests under a usd limit whose model has no price. Reject: 403. Allow: the request costs nothing.',
        { default: 'Reject' },
      ),
      timeZone: string('Time zone of calendar windows, by its IANA name; for example `Europe/Berlin`.', { minLength: 1, maxLength: 64, default: 'UTC' }),
      scope: choice(
        ['Replica', 'Gateway'],
        'Replica: each replica of the Gateway has the full budget, lost when it restarts. Gateway: the budget holds for all replicas together; they get shares of it from the operator, by demand.',
        { default: 'Replica' },
      ),
      store: choice(
        ['Redis', 'Postgres'],
        'Redis: the counters are in the Redis server of `config.redis`. Postgres: in the PostgreSQL database of `config.postgres`. The budget holds for all replicas, Gateways and clusters that use this server and have a policy of the same namespace and name. `scope` is ignored. Default: where `scope` says.',
      ),
      onDisconnect: choice(
        ['Reject', 'Allow'],
        'Handling of requests of a replica that gets no share from the operator, once its last one is used up or has expired (30 s), that gets no response from Redis or PostgreSQL in time, or that has no assignment of `quotaService` in force. Reject: 503. Allow: as with scope Replica, until it gets a share, a response or an assignment again.',
        { default: 'Reject' },
      ),
      quotaService: ref('BudgetQuotaService'),
      exposeRemaining: boolean('Whether responses have the header x-budget-remaining-usd. Default: false.'),
    },
    ['name', 'limits'],
    [
      {
        rule: '!has(self.quotaService) || (size(self.limits) == 1 && has(self.limits[0].requests))',
        message: 'with quotaService, limits must be one limit of requests: the service assigns nothing else; use another budget for usd and tokens',
        reason: 'FieldValueInvalid',
      },
      {
        rule: '!has(self.quotaService) || !(has(self.store) || has(self.alertAt))',
        message: 'with quotaService, store and alertAt must not be set: the service counts',
        reason: 'FieldValueForbidden',
      },
    ],
  ),
  BudgetQuotaService: object(
    "A rate limit quota service (`envoy.service.rate_limit_quota.v3`) that assigns what each replica may admit, in place of the operator. The assignment replaces the budget's limit, which holds only with `onDisconnect: Allow` while no assignment is in force. `scope` is ignored.",
    {
      backendRef: ref('BackendObjectReference', 'The service: a Service or a ProxyBackend.'),
      domain: string('Domain that reports name.', { minLength: 1, maxLength: 256 }),
      bucket: map(
        string('Value.', { minLength: 1, maxLength: 256 }),
        'The bucket id, to which the value of `key` is added. Default: `policy`, the namespace and name of the policy as `<namespace>/<name>`, and `budget`, the name of the budget.',
        1,
        16,
      ),
      keyName: string('Name in the bucket id of the value of `key`. Values longer than 256 characters are replaced by a digest; an empty one is left out.', {
        minLength: 1,
        maxLength: 256,
        default: 'key',
      }),
      reportingInterval: duration('Time between reports.', 100, '1s'),
    },
    ['backendRef', 'domain'],
    [
      {
        rule: '!has(self.bucket) || !(self.keyName in self.bucket)',
        message: 'bucket must not have the entry that keyName names, which is the value of key',
        reason: 'FieldValueInvalid',
      },
    ],
  ),
  BudgetLimit: object(
    'One limit: exactly one of usd, tokens, requests, for each window.',
    {
      usd: usd('US dollars, as a decimal number; for example `500` or `0.25`. The price is that of the model.'),
      tokens: integer('LLM tokens, input and output.', 1, 1_000_000_000_000),
      requests: integer('Requests.', 1, 1_000_000_000),
      window: string(
        'Hour, Day, Week or Month: a calendar window; weeks begin on Monday. Or a duration from 1s, such as `1m` or `24h`: a rolling window, in which the part of the previous window that is still within reach counts proportionally.',
        { minLength: 2, maxLength: 32, pattern: `^(Hour|Day|Week|Month)$|${DURATION_PATTERN}` },
      ),
    },
    ['window'],
    [
      exactlyOneOf('usd', 'tokens', 'requests'),
      {
        rule: "self.window in ['Hour','Day','Week','Month'] || duration(self.window) >= duration('1s')",
        message: 'window must be Hour, Day, Week, Month or a duration of at least 1s',
        reason: 'FieldValueInvalid',
      },
    ],
  ),
}
