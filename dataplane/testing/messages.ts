import type { BackendRef, Policy, Route } from '#gen/config/types.ts'
import type { ConfigMessage } from '../config/store.ts'
import { testConnection } from './exchange.ts'

/** What a policy on the Gateway of `testListener` has as its target. */
export const testGateway = { kind: 'Gateway', namespace: 'ns', name: 'gw' } as const satisfies Policy['target']

/** The port that `testConnection` and the servers of `server/testing.ts` came in by, and the listener `ns/gw.http` on it, for any host. */
export const testListener: readonly ConfigMessage[] = [
  { kind: 'bind', message: { key: testConnection.bind, port: 80 } },
  { kind: 'listener', message: { key: 'ns/gw.http', bind: testConnection.bind, gateway: { namespace: 'ns', name: 'gw' }, name: 'http', protocol: 'HTTP' } },
]

/** The first rule of HTTPRoute `ns/r` on `testListener`: every request to one backend, changed as wanted. */
export function testRoute(ref: BackendRef, change: Partial<Route> = {}): ConfigMessage {
  return {
    kind: 'route',
    message: {
      key: 'ns/r.00',
      listeners: ['ns/gw.http'],
      route: { kind: 'HTTPRoute', namespace: 'ns', name: 'r', ruleIndex: 0 },
      backends: [{ ref }],
      ...change,
    },
  }
}
