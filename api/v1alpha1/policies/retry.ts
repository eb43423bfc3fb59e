import { integer, object, set, type Definitions } from '../../schema.ts'
import { duration } from '../shared.ts'

export const retryDefinitions: Definitions = {
  Retry: object(
    'Retries (Gateway API HTTPRouteRetry). Connection failures and timeouts of an attempt are always retried. `retry` of the route rule replaces this.',
    {
      codes: set(integer('Status code.', 400, 599), 'Response codes that are retried.', undefined, 200),
      attempts: integer(
        'Number of retries after the first attempt; 0 turns retries off, and more than 254 count as 254. Bodies of up to 64 KiB are buffered for retries; requests with larger ones are not retried.',
        0,
        2147483647,
        {
          default: 1,
        },
      ),
      backoff: duration('Delay before each retry; default: none. The request timeout includes it.'),
    },
  ),
}
