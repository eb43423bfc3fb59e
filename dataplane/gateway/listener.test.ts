import { expect, test } from '@jest/globals'
import type { Listener, Route } from '#gen/config/types.ts'
import { prepareTable, RunningListener, type PreparedTable } from './listener.ts'
import { testRoute } from '../route/testing.ts'

const listener: Listener = { key: 'default/gateway.http', bind: 'b', gateway: { namespace: 'default', name: 'gateway' }, name: 'http', protocol: 'HTTP' }
const broken = (name: string): Route => testRoute(name, [{ path: { type: 'RegularExpression', value: '/(' } }])
const context = { policies: new Map(), state: {}, random: Math.random } as unknown as Parameters<RunningListener['prepare']>[0]

/** Names of the routes in the table, each of which has a pattern that it complains about. */
function routesAfter(routes: readonly Route[], prepared: PreparedTable): string[] {
  const running = new RunningListener(listener)
  running.update(listener, routes, [], prepared)
  running.prepare(context)
  return running.newErrors().map((error) => error.slice(0, error.indexOf(':')))
}

test('a prepared route table is used only for the routes that it was built from', async () => {
  const [a, b] = [broken('a'), broken('b')]
  const prepared = await prepareTable(listener, [a, b])
  const marked = { ...prepared, table: { ...prepared.table, errors: ['ahead: of time'] } }
  expect(routesAfter([a, b], marked)).toEqual(['ahead'])
  expect(routesAfter([a], marked)).toEqual(['default/a.00'])
  expect(routesAfter([a, broken('b')], marked)).toEqual(['default/a.00', 'default/b.00'])
  expect(routesAfter([a, b], { ...marked, hostname: 'other.example' })).toEqual(['default/a.00', 'default/b.00'])
})
