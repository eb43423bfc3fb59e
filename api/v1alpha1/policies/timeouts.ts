import { atLeastOneOf, object, type Definitions } from '../../schema.ts'
import { duration } from '../shared.ts'

export const timeoutsDefinitions: Definitions = {
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
}
