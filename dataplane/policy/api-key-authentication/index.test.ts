import { describe, expect, test } from '@jest/globals'
import type { APIKeyAuthentication, Secret } from '#gen/config/types.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { createPolicyState } from '../state.ts'
import { compileApiKeyAuthentication } from './index.ts'
import { digestKey, readKeys } from './keys.ts'
import { variables } from '../../request/exchange/variables.ts'

const secretOf = (name: string, data: Record<string, string>): Secret => ({ key: `opaque/ns/${name}`, type: 'opaque', data })
const one = secretOf('one', {
  raw: 'k-raw',
  padded: ' k-padded\n',
  emptyHash: `{"keyHash":"sha256:${digestKey('')}"}`,
  spaced: 'k- spaced',
  json: '{"key":"k-json","metadata":{"group":"sales","key":"forged"}}',
  hashed: `{"keyHash":"sha256:${digestKey('k-hashed').toUpperCase()}"}`,
  broken: '{"key":',
  both: `{"key":"k-both","keyHash":"sha256:${digestKey('k-both')}"}`,
  listed: '{"key":"k-listed","metadata":["x"]}',
  shortHash: '{"keyHash":"sha256:abc"}',
  number: '{"key":1}',
  empty: '',
})
const two = secretOf('two', { a: 'k-two' })
const config: APIKeyAuthentication = { secretRef: { secret: one.key } }

async function send(section: APIKeyAuthentication, authorization: string | string[] = [], secrets: Secret[] = [one, two], state = createPolicyState()) {
  const policy = compileApiKeyAuthentication(section, { ...state, secrets: new Map(secrets.map((secret) => [secret.key, secret])) })
  const prepare = (exchange: { request: { headers: { append(name: string, value: string): void } } }) => {
    for (const line of [authorization].flat()) exchange.request.headers.append('authorization', line)
  }
  const { exchange, response, isForwarded } = await mountPolicies([policy], { prepare }).request('http://host/')
  const apiKey = variables.apiKey.get(exchange) as (Record<string, unknown> & { key: { reveal(): string } }) | undefined
  return { status: response.status, text: await response.text(), isForwarded, forwarded: exchange.request.headers.getAll('authorization'), apiKey, response }
}

describe('an API key', () => {
  test.each(['k-raw', 'k-padded', 'k-json', 'k-hashed'])('%s is accepted and removed from the request', async (key) => {
    const { status, forwarded, apiKey } = await send(config, [`bearer ${key}`, 'Basic x'])
    expect([status, forwarded, apiKey?.key.reveal()]).toEqual([200, ['Basic x'], key])
    expect(JSON.stringify(apiKey)).not.toContain(key)
  })

  test('has metadata with integers of 64 bits', () => {
    const keys = readKeys([secretOf('big', { a: '{"key":"k","metadata":{"id":9007199254740993}}' })])
    expect(keys.get(digestKey('k'))).toMatchObject({ metadata: { id: 9007199254740993n } })
  })

  test('has metadata that cannot replace the key', async () => {
    const { apiKey } = await send(config, 'Bearer k-json')
    expect(apiKey).toMatchObject({ group: 'sales' })
    expect(apiKey?.key.reveal()).toBe('k-json')
  })

  test.each([
    ['no header', [], 'no API Key found'],
    ['another scheme', 'Basic k-raw', 'no API Key found'],
    ['another key', 'Bearer k-rav', 'invalid credentials'],
    ['the name of an entry', 'Bearer raw', 'invalid credentials'],
    ['the digest of a key', `Bearer ${digestKey('k-raw')}`, 'invalid credentials'],
    ['the text of an entry', 'Bearer {"key":1}', 'invalid credentials'],
    ['an entry that is no JSON', 'Bearer {"key":', 'invalid credentials'],
    ['an entry with key and hash', 'Bearer k-both', 'invalid credentials'],
    ['an entry with bad metadata', 'Bearer k-listed', 'invalid credentials'],
    ['no key, which matches neither an empty entry nor the digest of one', 'Bearer', 'invalid credentials'],
    ['white space as key', 'Bearer  ', 'invalid credentials'],
    ['an entry with white space inside', 'Bearer k- spaced', 'invalid credentials'],
    ['the key of a Secret that is not referred to', 'Bearer k-two', 'invalid credentials'],
    ['two keys', ['Bearer k-raw', 'Bearer k-raw'], 'invalid credentials'],
  ])('is rejected for %s', async (_, authorization, text) => {
    const result = await send(config, authorization)
    expect(result).toMatchObject({ status: 401, text: `api key authentication failure: ${text}`, isForwarded: false, apiKey: undefined })
    expect(result.response.headers.get('www-authenticate')).toBe(`Bearer realm="Restricted"${text === 'invalid credentials' ? ', error="invalid_token"' : ''}`)
  })

  test('is rejected from the time of its expires on, while the Secret stays as it is', async () => {
    const expiring = secretOf('expiring', {
      a: '{"key":"k-short","expires":"2026-11-23T12:00:00+01:00"}',
      b: `{"keyHash":"sha256:${digestKey('k-hash')}","expires":"2026-11-23T11:00:00Z"}`,
      c: '{"key":"k-bad","expires":"tomorrow"}',
      d: '{"key":"k-long"}',
    })
    let nowMs = Date.parse('2026-11-23T10:59:59.999Z')
    const state = createPolicyState({ epochMs: () => nowMs })
    const statuses = async () => {
      const results = []
      for (const key of ['k-short', 'k-hash', 'k-bad', 'k-long'])
        results.push((await send({ secretRef: { secret: expiring.key } }, `Bearer ${key}`, [expiring], state)).status)
      return results
    }
    expect(await statuses()).toEqual([200, 200, 401, 200])
    nowMs += 1
    expect(await statuses()).toEqual([401, 401, 401, 200])
  })

  test('can be in several Secrets of a selector', async () => {
    const section: APIKeyAuthentication = { secretSelector: { secrets: [one.key, two.key, 'opaque/ns/gone'] } }
    expect([(await send(section, 'Bearer k-raw')).status, (await send(section, 'Bearer k-two')).status]).toEqual([200, 200])
  })
})

describe('modes', () => {
  test.each([
    ['Optional', [], 200, false],
    ['Optional', ['Bearer bad'], 401, false],
    ['Optional', ['Bearer k-raw'], 200, true],
    ['Permissive', [], 200, false],
    ['Permissive', ['Bearer bad'], 200, false],
    ['Permissive', ['Bearer k-raw'], 200, true],
  ] as const)('%s, %j: %d', async (mode, authorization, status, isKnown) => {
    const result = await send({ ...config, mode }, [...authorization])
    expect([result.status, result.apiKey !== undefined]).toEqual([status, isKnown])
    if (status === 200) expect(result.forwarded).toEqual(isKnown ? [] : authorization)
  })
})

describe('API keys that are missing', () => {
  test.each<[string, APIKeyAuthentication]>([
    ['the Secret is missing', { secretRef: { secret: 'opaque/ns/gone' } }],
    ['the reference is bad', { secretRef: { invalid: 'not found' } }],
    ['the selector matches nothing', { secretSelector: { secrets: [] } }],
    ['the Secret is missing, in mode Optional', { mode: 'Optional', secretRef: { secret: 'opaque/ns/gone' } }],
  ])('lead to 401: %s', async (_, section) => {
    expect([(await send(section)).status, (await send(section, 'Bearer k-raw')).status]).toEqual([401, 401])
  })

  test('apply as soon as a new version of the Secret has them', async () => {
    const state = createPolicyState()
    expect((await send(config, 'Bearer k-raw', [one], state)).status).toBe(200)
    expect((await send(config, 'Bearer k-raw', [secretOf('one', { raw: 'k-new' })], state)).status).toBe(401)
  })
})

test('finding a key takes as long among 10,000 as among 10', () => {
  const make = (count: number) => readKeys([secretOf('many', Object.fromEntries(Array.from({ length: count }, (_, index) => [`e${index}`, `key-${index}`])))])
  const time = (count: number) => {
    const table = make(count)
    expect(table.size).toBe(count)
    let bestMs = Infinity
    for (let round = 0; round < 20; round++) {
      const startedMs = performance.now()
      for (let index = 0; index < 1000; index++) table.get(digestKey(`key-${index % count}`))
      bestMs = Math.min(bestMs, performance.now() - startedMs)
    }
    return bestMs
  }
  time(10)
  // A linear search would take 1000 times as long.
  expect(time(10_000)).toBeLessThan(20 * time(10))
})

describe('the key of a client of Google', () => {
  async function ask(target: string, headers: readonly (readonly [string, string])[], section = config) {
    const state = createPolicyState()
    const policy = compileApiKeyAuthentication(section, { ...state, secrets: new Map([[one.key, one]]) })
    const prepare = (exchange: { request: { headers: { append(name: string, value: string): void } } }) => {
      for (const [name, value] of headers) exchange.request.headers.append(name, value)
    }
    const { exchange, response } = await mountPolicies([policy], { prepare }).request(`http://host${target}`)
    return { status: response.status, target: exchange.request.target, header: exchange.request.headers.get('x-goog-api-key') }
  }
  const call = '/v1beta/models/m:generateContent'

  test.each<[string, string, [string, string][], string]>([
    ['in its header', call, [['x-goog-api-key', 'k-raw']], call],
    ['in the query', `${call}?alt=sse&key=k-raw`, [], `${call}?alt=sse`],
    ['in the query, alone', '/v1beta/models?key=k-raw', [], '/v1beta/models'],
    ['in the query, with an encoded name', `${call}?k%65y=k-raw&alt=sse`, [], `${call}?alt=sse`],
    ['in both places', `${call}?key=k-raw`, [['x-goog-api-key', 'k-raw']], call],
  ])('is accepted %s, and removed', async (_, target, headers, left) => {
    expect(await ask(target, headers)).toEqual({ status: 200, target: left, header: undefined })
  })

  test.each<[string, string, [string, string][]]>([
    ['another key', `${call}?key=k-rav`, []],
    ['two keys', `${call}?key=k-raw&key=k-json`, []],
    ['two keys in two places', `${call}?key=k-json`, [['x-goog-api-key', 'k-raw']]],
    ['an empty key', `${call}?key=`, [['x-goog-api-key', '']]],
    ['a parameter of another path', '/models-of-cars?key=k-raw', []],
    [
      'a valid key beside a bearer token that is none',
      call,
      [
        ['x-goog-api-key', 'k-raw'],
        ['authorization', 'Bearer k-rav'],
      ],
    ],
  ])('is none: %s', async (_, target, headers) => {
    expect((await ask(target, headers)).status).toBe(401)
  })

  test('of Google itself passes where keys are optional', async () => {
    const sent = await ask(call, [['x-goog-api-key', 'AIzaMine']], { ...config, mode: 'Optional' })
    expect(sent).toEqual({ status: 200, target: call, header: 'AIzaMine' })
  })
})
