import { createHash } from 'node:crypto'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { Plugin } from '#gen/config/types.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { KeyValueStore, type KeyValueCall } from '../../runtime/key-value.ts'
import { scriptStores, type ScriptOutcome, type ScriptStore } from '../../runtime/value-store.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import { endPlugins, retainPlugins } from './host.ts'
import { compilePlugins } from './index.ts'
import { runRemote } from './remote-values.ts'

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

function start(isolation: NonNullable<Plugin['isolation']>, state = newState(), name = 'p', kv?: Plugin['kv']) {
  const source = { configMapRef: { code: CODE, file: 'index.ts', owner: 'ns/policy' } }
  const plugin: Plugin = { name, source, limits: { timeout: '50s' }, isolation, ...(kv && { kv }) }
  const policy = compilePlugins([plugin], 'AfterAuthorization', state)
  const app = mountPolicies(policy === undefined ? [] : [policy])
  return async (...call: unknown[]): Promise<unknown> => (await app.request(`http://host/?call=${encodeURIComponent(JSON.stringify(call))}`)).response.json()
}

describe.each(['Worker', 'Process', 'InProcess'] as const)('kv of a plugin with isolation %s', (isolation) => {
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
      expect(await call('set', 'k', '1', { ttl: 'x' })).toEqual({ error: 'TypeError: ttl is not a positive number of seconds' })
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

describe('kv: Redis of a plugin', () => {
  /** A server that gives these responses, one after another. */
  function storeOf(...outcomes: ScriptOutcome[]): ScriptStore & { readonly calls: (readonly [keys: readonly string[], args: readonly string[]])[] } {
    const calls: [readonly string[], readonly string[]][] = []
    return { calls, evaluate: (_script, keys, args) => Promise.resolve((calls.push([keys, args]), outcomes.shift() ?? { error: 'no outcome', mayRun: false })) }
  }

  test('has keys below a digest of the plugin, times in milliseconds, and at most 30 days', async () => {
    const store = storeOf({ value: Buffer.from('v') }, { value: null }, { value: Buffer.from('OK') }, { value: Buffer.from('OK') }, { value: 1 }, { value: 3 })
    const run = (call: KeyValueCall): Promise<unknown> => runRemote(store, 'ns/policy/p', call)
    expect([
      await run({ operation: 'get', key: 'a' }),
      await run({ operation: 'get', key: 'b' }),
      await run({ operation: 'set', key: 'a', value: '', ttlMs: 1500.2 }),
      await run({ operation: 'set', key: 'a', value: 'x', ttlMs: 1e15 }),
      await run({ operation: 'delete', key: 'a' }),
      await run({ operation: 'increment', key: 'n', by: 3, ttlMs: undefined }),
    ]).toEqual(['v', undefined, undefined, undefined, true, 3])
    const digest = createHash('sha256').update('ns/policy/p').digest('base64url')
    expect(store.calls.slice(1)).toEqual([
      [[`proxy:plugin:${digest}:b`], ['65536']],
      [[`proxy:plugin:${digest}:a`], ['', '1501']],
      [[`proxy:plugin:${digest}:a`], ['x', '2592000000']],
      [[`proxy:plugin:${digest}:a`], []],
      [[`proxy:plugin:${digest}:n`], ['3', '2592000000']],
    ])
  })

  test('rejects what kv in memory rejects, and while Redis cannot be used', async () => {
    const rejected = (call: KeyValueCall, ...outcomes: ScriptOutcome[]): Promise<string> =>
      runRemote(storeOf(...outcomes), 'p', call).then(
        () => 'resolved',
        (error: unknown) => String(error),
      )
    const increment = { operation: 'increment', key: 'n', by: 1, ttlMs: undefined } as const
    expect([
      await rejected({ operation: 'get', key: 'k'.repeat(513) }),
      await rejected({ operation: 'set', key: 'k', value: 'v'.repeat(65_537), ttlMs: undefined }),
      await rejected({ ...increment, ttlMs: -1 }),
      await rejected({ ...increment, by: 0.5 }),
      await rejected(increment, { value: Buffer.from('integer') }),
      await rejected(increment, { value: Buffer.from('range') }),
      await rejected({ operation: 'get', key: 'k' }, { error: 'Redis did not respond in time', mayRun: true }),
    ]).toEqual([
      'TypeError: the key is longer than 512 bytes',
      'TypeError: the value is longer than 65536 bytes',
      'TypeError: the time to live is -1: give a positive number',
      'TypeError: increment by 0.5: give an integer',
      'TypeError: the value is not an integer and cannot be incremented',
      'TypeError: the sum is beyond the range of integers',
      'Error: kv cannot be used: Redis did not respond in time',
    ])
    expect(await runRemote(undefined, 'p', increment).catch(String)).toBe('Error: kv cannot be used: config.redis is not set')
  })

  test(
    'is the store of the registry, for each isolation',
    async () => {
      for (const isolation of ['Worker', 'Process', 'InProcess'] as const) {
        const state = newState()
        const store = storeOf({ value: 1 }, { value: Buffer.from('from redis') })
        scriptStores.set(state.registry, store)
        expect(await start(isolation, state, 'p', 'Redis')('get', 'k')).toEqual({ result: 'from redis' })
        expect(store.calls).toHaveLength(2)
      }
    },
    SLOW,
  )
})
