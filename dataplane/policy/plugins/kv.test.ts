import { afterEach, describe, expect, test } from '@jest/globals'
import type { Plugin } from '#gen/config/types.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { KeyValueStore } from '../../runtime/key-value.ts'
import { createRegistry } from '../../telemetry/metrics/registry.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import { endPlugins, retainPlugins } from './host.ts'
import { compilePlugins } from './index.ts'

/** More than a slow machine needs to start a thread. */
const SLOW = 60_000
const states: PolicyState[] = []
afterEach(() => {
  for (const { registry } of states.splice(0)) endPlugins(registry)
})

/** @param store shared with the other workers; undefined: one thread handles all traffic */
function newState(store?: KeyValueStore): PolicyState {
  // Only the part of the state that plugins use.
  const shared =
    store && ({ keyValue: async (plugin, call) => (call === undefined ? void store.drop(plugin) : store.run(plugin, call)) } as PolicyState['shared'])
  const state = createPolicyState({ registry: createRegistry(), permitsInProcess: true, ...(shared && { shared }) })
  states.push(state)
  return state
}

const CODE = `export default { setup: async ({ kv }) => {
  await kv.increment('setups')
  return { async request(c) {
    const [operation, ...args] = JSON.parse(decodeURIComponent(c.req.query('call')))
    try {
      return c.json({ result: await kv[operation](...args) })
    } catch (error) {
      return c.json({ error: error.name + ': ' + error.message })
    }
  } }
} }`

function start(isolation: NonNullable<Plugin['isolation']>, state = newState(), name = 'p') {
  const plugin: Plugin = { name, source: { configMapRef: { code: CODE, file: 'index.ts', owner: 'ns/policy' } }, limits: { timeout: '50s' }, isolation }
  const policy = compilePlugins([plugin], 'AfterAuthorization', state)
  const app = mountPolicies(policy === undefined ? [] : [policy])
  return async (...call: unknown[]): Promise<unknown> => (await app.request(`http://host/?call=${encodeURIComponent(JSON.stringify(call))}`)).response.json()
}

describe.each(['Worker', 'InProcess'] as const)('kv of a plugin with isolation %s', (isolation) => {
  test(
    'gets, sets, deletes and increments values, also in setup',
    async () => {
      const call = start(isolation)
      expect([
        await call('get', 'setups'),
        await call('get', 'k'),
        await call('set', 'k', 'v', { ttl: 60 }),
        await call('get', 'k'),
        await call('delete', 'k'),
        await call('increment', 'n'),
        await call('increment', 'n', 5, { ttl: 60 }),
      ]).toEqual([{ result: '1' }, {}, {}, { result: 'v' }, { result: true }, { result: 1 }, { result: 6 }])
      expect(await call('set', 'k', 1)).toEqual({ error: 'TypeError: the value is not a string' })
      expect(await call('set', 'k', '1', { ttl: 'x' })).toEqual({ error: 'TypeError: the time to live is NaN: give a positive number' })
    },
    SLOW,
  )

  test(
    'is shared by all workers of the data plane, and not by plugins',
    async () => {
      const store = new KeyValueStore()
      const [one, two, other] = [start(isolation, newState(store)), start(isolation, newState(store)), start(isolation, newState(store), 'other')]
      await one('set', 'k', 'v')
      expect([await two('get', 'k'), await other('get', 'k'), await two('increment', 'n'), await one('increment', 'n')]).toEqual([
        { result: 'v' },
        {},
        { result: 1 },
        { result: 2 },
      ])
    },
    SLOW,
  )

  test(
    'is empty after the plugin was removed from its policy',
    async () => {
      const state = newState()
      await start(isolation, state)('set', 'k', 'v')
      retainPlugins(state.registry, [])
      expect(await start(isolation, state)('get', 'k')).toEqual({})
    },
    SLOW,
  )
})
