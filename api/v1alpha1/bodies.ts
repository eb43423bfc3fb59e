import { atLeastOneOf, choice, integer, object, ref, type Definitions } from '../schema.ts'

export const bodyDefinitions: Definitions = {
  RequestBody: object(
    'Limits the body of requests, in the form that the client sent. A longer one gets 413 before the upstream is called: a body of unknown length is read first. Bodies of gRPC requests are not read first, and upgrades are not limited.',
    { maxSize: integer('Most bytes of a body.', 0, 4294967295) },
    ['maxSize'],
  ),
  BandwidthLimit: object(
    'Limits the bytes per second of bodies, in each worker of a replica. A body above the limit is delivered later, with back-pressure to its sender.',
    {
      request: ref('Bandwidth', 'Limit of bodies of requests.'),
      response: ref('Bandwidth', 'Limit of bodies of responses.'),
      scope: choice(
        ['Target', 'Request'],
        'Target: all requests to which the policy applies on one of its targets share the limit. Request: each request has its own.',
        { default: 'Target' },
      ),
    },
    [],
    [atLeastOneOf('request', 'response')],
  ),
  Bandwidth: object('A rate.', { bytesPerSecond: integer('Bytes per second.', 1024, 4294967295) }, ['bytesPerSecond']),
}
