import { integer, object, set, type Definitions } from '../../schema.ts'
import { duration } from '../shared.ts'

export const retryDefinitions: Definitions = {
  Retry: object(
    'Retries (Gateway API HTTPRouteRetry). Connection failures and timeouts of an attempt are always retried. `retry` of the route rule replaces this.',
    {
      codes: set(integer('Status code.', 400, 599), 'Response codes that are retried.', undefined, 200),
      attempts: integer(
        'Further tries after the first; more than 254 count as 254. Bodies are kept for replay up to 64 KiB; larger ones get one attempt.',
        1,
        2147483647,
        {
          default: 1,
        },
      ),
      backoff: duration('Delay before each retry; default: none. Never outlives timeouts.request.'),
    },
  ),
}
