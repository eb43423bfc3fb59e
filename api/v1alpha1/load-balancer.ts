import { choice, integer, object, ref, string, type Definitions } from '../schema.ts'
import { duration } from './shared.ts'

const isHash = "(has(self.type) && self.type == 'ConsistentHash')"

export const loadBalancerDefinitions: Definitions = {
  LoadBalancer: object(
    'Selects an endpoint of the backend for each request, of the nearest that are not evicted.',
    {
      type: choice(
        ['LeastRequest', 'RoundRobin', 'Random', 'ConsistentHash'],
        'LeastRequest: of two random endpoints the one with better health, latency and load. RoundRobin: one after the other, in each worker. ConsistentHash: the same one for each key.',
        { default: 'LeastRequest' },
      ),
      consistentHash: ref('ConsistentHash'),
      slowStart: object(
        'New endpoints receive few requests at first.',
        { window: duration('Time in which the share of a new endpoint grows from 10 % to that of the others.', 1000) },
        ['window'],
      ),
      panicThreshold: integer(
        'If a smaller share of the endpoints, in percent, is not evicted, evicted ones are used too. Default: only if all are evicted.',
        1,
        100,
      ),
    },
    [],
    [
      {
        rule: `has(self.consistentHash) == ${isHash}`,
        message: 'consistentHash is required for type ConsistentHash, and only permitted for it',
        fieldPath: '.consistentHash',
      },
      { rule: `!has(self.slowStart) || !${isHash}`, message: 'slowStart may not be set for type ConsistentHash', fieldPath: '.slowStart' },
    ],
  ),
  ConsistentHash: object(
    'The key of a request. Requests without one are balanced as LeastRequest does. If several backends of a rule have weights, the key selects the backend too.',
    {
      type: choice(
        ['Header', 'Cookie', 'QueryParam', 'SourceAddress'],
        'Where the key is. SourceAddress: the address of the client, for IPv6 its /64 network.',
      ),
      name: string('Name of the header, cookie or query parameter.', { minLength: 1, maxLength: 256, pattern: "^[A-Za-z0-9!#$%&'*+\\-.^_`|~]+$" }),
      ttl: duration('Lifetime of the cookie that is set if a request has none. Default: the session of the browser.', 1000),
      maxLoad: integer(
        'Requests in flight that an endpoint may have, in percent of the average; further ones go to the next endpoint of their key. Default: no limit.',
        110,
        1000,
      ),
    },
    ['type'],
    [
      { rule: "has(self.name) == (self.type != 'SourceAddress')", message: 'name is required, except for type SourceAddress', fieldPath: '.name' },
      { rule: "!has(self.ttl) || self.type == 'Cookie'", message: 'ttl may only be set for type Cookie', fieldPath: '.ttl' },
    ],
  ),
}
