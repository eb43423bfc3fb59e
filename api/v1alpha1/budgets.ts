import { DURATION_PATTERN } from '../duration.ts'
import { anyJson, boolean, choice, exactlyOneOf, integer, list, object, ref, string, type Definitions } from '../schema.ts'

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
        'Handling of requests of a replica that gets no share from the operator, once its last one is used up or has expired (30 s), or that gets no response from Redis or PostgreSQL in time. Reject: 503. Allow: as with scope Replica, until it gets a share or a response again.',
        { default: 'Reject' },
      ),
      exposeRemaining: boolean('Whether responses have the header x-budget-remaining-usd. Default: false.'),
    },
    ['name', 'limits'],
  ),
  BudgetLimit: object(
    'One limit: exactly one of usd, tokens, requests, for each window.',
    {
      usd: string('US dollars, as a decimal number; for example `500` or `0.25`. The price is that of the model.', {
        pattern: '^(0|[1-9][0-9]{0,5}|1000000)(\\.[0-9]{1,6})?$',
        maxLength: 14,
      }),
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
