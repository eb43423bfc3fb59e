import type { BackendRef, Policy, Route } from '#gen/config/types.ts'
import type { ConfigMessage } from '../config/store.ts'
import { testConnection } from './exchange.ts'

/** Target of a policy on the Gateway of `testListener`. */
export const testGateway = { kind: 'Gateway', namespace: 'ns', name: 'gw' } as const satisfies Policy['target']

/** The bind of `testConnection` and of the servers in `net/server/testing.ts`, with the listener `ns/gw.http` for any host. */
export const testListener: readonly ConfigMessage[] = [
  { kind: 'bind', message: { key: testConnection.bind, port: 80 } },
  { kind: 'listener', message: { key: 'ns/gw.http', bind: testConnection.bind, gateway: { namespace: 'ns', name: 'gw' }, name: 'http', protocol: 'HTTP' } },
]

/** The first rule of HTTPRoute `ns/r` on `testListener`: sends every request to one backend. `change` overrides fields. */
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
