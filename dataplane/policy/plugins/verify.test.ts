import { afterEach, describe, expect, test } from '@jest/globals'
import type { Plugin, Policy } from '#gen/config/types.ts'
import { waitUntil } from '../../../e2e/harness/wait.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import { endPlugins, refusedPlugins, retainPlugins, verifyPlugins } from './host.ts'
import { pluginMetrics } from './metrics.ts'

/** More than a slow machine needs to start a thread. */
const SLOW = 60_000
const states: PolicyState[] = []
afterEach(() => {
  for (const { registry } of states.splice(0)) endPlugins(registry)
})

function newState(): PolicyState {
  const state = createPolicyState({ registry: createRegistry(), permitsInProcess: true })
  states.push(state)
  return state
}

const SCHEMA = `{ type: 'object', properties: { a: { type: 'array' } }, required: ['a'] }`
const GOOD = `export default {
  configSchema: ${SCHEMA},
  setup: () => ({ request: (c, next) => next() }) }`

const policyWith = (isolation: NonNullable<Plugin['isolation']>, code: string, config?: Plugin['config']): Policy[] => {
  const source = { configMapRef: { code, file: 'shop/tenants/index.ts', owner: 'shop/policy' } }
  const plugin: Plugin = { name: 'tenants', source, isolation, ...(config !== undefined && { config }) }
  const policy = { kind: 'ProxyPolicy', namespace: 'shop', name: 'policy' } as const
  return [{ key: 'traffic/shop/policy:0', policy, target: { kind: 'Gateway', namespace: 'shop', name: 'gw' }, traffic: { plugins: [plugin] } }]
}

describe.each(['Worker', 'InProcess'] as const)('verification of a plugin with isolation %s', (isolation) => {
  test(
    'loads it before the first request, and reports an error until a version can be loaded',
    async () => {
      const state = newState()
      const { threads } = pluginMetrics(state.registry)
      const started = (): number => threads.series('shop/policy/tenants').value
      const verify = async (policies: Policy[], expected: readonly RegExp[]): Promise<void> => {
        verifyPlugins(state, policies)
        await waitUntil(`the problems ${expected.join()}`, () => {
          const problems = refusedPlugins(state.registry)
          return problems.length === expected.length && problems.every(({ problem }, index) => expected[index]?.test(problem))
        })
      }
      await verify(policyWith(isolation, GOOD), [/config must have required property 'a'/])
      await verify(policyWith(isolation, GOOD, { a: 1 }), [/config\.a must be array/])
      // Jest replaces the stack traces of this thread.
      const broken = isolation === 'Worker' ? /shop\/tenants\/index\.ts:3:\d+: Error: broken/ : /shop\/tenants\/index\.ts: Error: broken/
      await verify(policyWith(isolation, 'export default {\n  setup() {\n    throw new Error("broken")\n  } }'), [broken])
      expect(refusedPlugins(state.registry)).toEqual([{ plugin: 'shop/policy/tenants', problem: expect.any(String) }])
      const good = policyWith(isolation, GOOD, { a: [] })
      await verify(good, [])
      if (isolation === 'Worker') await waitUntil('its thread runs', () => started() === 1)
      await verify(policyWith(isolation, 'export default 1'), [/the default export is not a plugin/])
      retainPlugins(state.registry, [])
      expect(refusedPlugins(state.registry)).toEqual([])
    },
    SLOW,
  )
})
