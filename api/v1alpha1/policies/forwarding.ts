import { atLeastOneOf, choice, integer, object, set, string, type Definitions } from '../../schema.ts'
import { duration } from '../shared.ts'

/** Traffic policies that decide how, or whether, a request is forwarded. */
export const forwardingDefinitions: Definitions = {
  HostnameRewrite: object(
    'What the backend sees as Host. Without this policy: Auto for backends named by host, None for Services and IP addresses. Ignored where a URLRewrite filter of the route sets a host.',
    { mode: choice(['Auto', 'None'], 'Auto sets Host from the destination; None passes the Host of the client.') },
    ['mode'],
  ),
  Timeouts: object(
    'Timeouts of HTTPRoutes and GRPCRoutes; ignored elsewhere. `timeouts` of the route rule replaces this.',
    {
      request: duration(
        'Time from receipt of the request until the whole response, body included, has been received; covers retries. Late response head: 504; late body: the stream is aborted.',
        1,
      ),
    },
    [],
    [atLeastOneOf('request')],
  ),
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
  DirectResponse: object(
    'Answers the request without forwarding it, after authentication, authorization and limits have passed.',
    { status: integer('Status code.', 200, 599), body: string('Body; none when not set.', { minLength: 1, maxLength: 4096 }) },
    ['status'],
  ),
}
