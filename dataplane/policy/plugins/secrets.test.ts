import { afterEach, describe, expect, test } from '@jest/globals'
import type { Plugin, Secret } from '#gen/config/types.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import { endPlugins } from './host.ts'
import { compilePlugins } from './index.ts'

/** More than a slow machine needs to start a thread. */
const SLOW = 60_000
const states: PolicyState[] = []
const lines: string[] = []
afterEach(() => {
  for (const { registry } of states.splice(0)) endPlugins(registry)
  lines.length = 0
})

function newState(): PolicyState {
  const line = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const log = { error: line, warn: line, info: line, debug: line, trace: line, isEnabled: () => true }
  const state = createPolicyState({ registry: createRegistry(), log, permitsInProcess: true })
  states.push(state)
  return state
}

const CODE = `export default { setup: ({ secrets, log }) => ({ async request(c) {
  log.info('the key is ' + secrets.signing)
  if (c.req.query('fail')) throw new Error('bad key ' + secrets.signing)
  try { secrets.signing = 'changed' } catch {}
  return c.json(secrets)
} }) }`

const secretOf = (value: string): PolicyState['secrets'] =>
  new Map<string, Secret>([['opaque/ns/keys', { key: 'opaque/ns/keys', type: 'opaque', data: { signing: value, other: 'not read' } }]])

function start(isolation: NonNullable<Plugin['isolation']>, state: PolicyState, secretRef: object = { secret: 'opaque/ns/keys', key: 'signing' }) {
  const source = { configMapRef: { code: CODE, file: 'index.ts', owner: 'ns/policy' } }
  const plugin: Plugin = { name: 'p', source, limits: { timeout: '50s' }, isolation, secrets: [{ name: 'signing', secretRef }] }
  const policy = compilePlugins([plugin], 'AfterAuthorization', state)
  const app = mountPolicies(policy === undefined ? [] : [policy])
  return async (query = ''): Promise<string> => (await app.request(`http://host/?${query}`)).response.text()
}

describe.each(['Worker', 'InProcess'] as const)('secrets of a plugin with isolation %s', (isolation) => {
  test(
    'are those that it names, read-only, and a new value loads a new version',
    async () => {
      const state = newState()
      expect(await start(isolation, { ...state, secrets: secretOf('hunter22') })()).toBe('{"signing":"hunter22"}')
      expect(await start(isolation, { ...state, secrets: secretOf('hunter23') })()).toBe('{"signing":"hunter23"}')
    },
    SLOW,
  )

  test(
    'do not appear in logs',
    async () => {
      const send = start(isolation, { ...newState(), secrets: secretOf('hunter22') })
      await send('fail=1')
      expect(lines.join('\n')).toContain('the key is ***')
      expect(lines.join('\n')).toContain('bad key ***')
      expect(lines.join('\n')).not.toContain('hunter')
    },
    SLOW,
  )
})

describe('a secret that is missing', () => {
  test.each<[string, object, string]>([
    ['without its Secret', { invalid: 'Secret ns/gone not found' }, 'secret signing: Secret ns/gone not found'],
    ['without its key', { secret: 'opaque/ns/keys', key: 'toString' }, 'secret signing: opaque/ns/keys has no toString'],
  ])('%s makes the plugin fail, and the log names it', async (_, secretRef, line) => {
    expect(await start('InProcess', { ...newState(), secrets: secretOf('hunter22') }, secretRef)()).toBe('plugin failed')
    expect(lines.join('\n')).toContain(line)
  })
})
