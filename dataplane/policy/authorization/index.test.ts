import { describe, expect, test } from '@jest/globals'
import type { JsonLimits } from '#api/json/index.ts'
import type { Authorization } from '#gen/config/types.ts'
import type { Policy } from '../../request/exchange/context.ts'
import { BufferBody, readBody, type Body } from '../../http/body.ts'
import { LongBody, ManualBody } from '../../testing/body.ts'
import { testExchange } from '../../testing/exchange.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { createPolicyState } from '../state.ts'
import { compileAuthorization } from './index.ts'
import { variableNamed } from '../../request/exchange/variables.ts'

type Action = NonNullable<Authorization['action']>

const rules = (action: Action | undefined, ...matchExpressions: string[]): Authorization => ({ ...(action && { action }), policy: { matchExpressions } })

function compile(sets: readonly Authorization[]): Policy {
  const policy = compileAuthorization(sets, createPolicyState())
  if (policy === undefined) throw new Error('no policy')
  return policy
}

async function send(
  sets: readonly Authorization[],
  request: { headers?: Record<string, string>; body?: Body; values?: Record<string, unknown>; limits?: JsonLimits } = {},
) {
  const app = mountPolicies([compile(sets)], {
    prepare: (exchange) => {
      exchange.request.body = request.body
      exchange.jsonLimits = request.limits ?? exchange.jsonLimits
      for (const [name, value] of Object.entries(request.values ?? {})) variableNamed(name)?.set(exchange, value)
    },
  })
  const { response, exchange, isForwarded } = await app.request('http://host/a', { headers: request.headers ?? {} })
  return { answer: `${response.status} ${await response.text()}`, exchange, isForwarded }
}

const ALLOWED = '200 upstream'
const DENIED = '403 authorization failed'

describe('authorization of requests', () => {
  const yes = 'request.method == "GET"'
  const no = 'request.method == "PUT"'
  const fails = 'request.headers["x-missing"] == "1"'
  const text = 'request.method'
  const broken = 'request.method == '

  test.each<[string, Authorization[], string]>([
    ['an Allow that matches', [rules('Allow', yes)], ALLOWED],
    ['Allow is the default', [rules(undefined, no)], DENIED],
    ['an Allow that does not match', [rules('Allow', no)], DENIED],
    ['one matching expression of an Allow is enough', [rules('Allow', no, yes)], ALLOWED],
    ['one matching Allow of several is enough, on whichever level (row 23)', [rules('Allow', no), rules('Allow', yes)], ALLOWED],
    ['a Deny that matches', [rules('Deny', yes)], DENIED],
    ['only Deny rules, none matches (row 27)', [rules('Deny', no), rules('Deny', no)], ALLOWED],
    ['a Deny beats an Allow', [rules('Allow', yes), rules('Deny', yes)], DENIED],
    ['one matching expression of a Deny is enough', [rules('Deny', no, yes)], DENIED],
    ['a Deny that fails does not deny (row 25)', [rules('Deny', fails)], ALLOWED],
    ['a Deny that does not compile denies everything', [rules('Deny', broken), rules('Allow', yes)], DENIED],
    ['an Allow that does not compile leaves the others in force', [rules('Allow', broken, yes)], ALLOWED],
    ['a rule about absent claims', [rules('Allow', '!has(jwt.sub) || jwt.sub == "ann"')], ALLOWED],
    ['a rule about an absent key', [rules('Allow', 'apiKey == null && !has(apiKey.name)')], ALLOWED],
    ['Require false, Allow true (row 26)', [rules('Require', no), rules('Allow', yes)], DENIED],
    ['a Require alone that matches', [rules('Require', yes)], ALLOWED],
    ['every expression of a Require must match', [rules('Require', yes, no)], DENIED],
    ['a Require that matches still needs an Allow where there is one', [rules('Require', yes), rules('Allow', no)], DENIED],
    ['an Allow that fails does not allow', [rules('Allow', fails)], DENIED],
    ['a Require that fails is not met', [rules('Require', fails)], DENIED],
    ['an Allow that returns no bool does not allow', [rules('Allow', text)], DENIED],
    ['a Require that returns no bool is not met', [rules('Require', text)], DENIED],
    ['a Deny that returns no bool rejects', [rules('Deny', text)], '403 authorization failed: a rule cannot be evaluated on this request'],
    ['an Allow that does not compile allows nothing', [rules('Allow', broken)], DENIED],
    ['a Require that does not compile rejects all requests', [rules('Require', broken), rules('Allow', yes)], DENIED],
    ['an expression that does not compile does not affect others', [rules('Allow', broken, yes)], ALLOWED],
    ['a variable of another phase is a failure', [rules('Allow', 'response.code == 200')], DENIED],
  ])('follows the rules: %s', async (_, sets, expected) => {
    const { answer, isForwarded } = await send(sets)
    expect([answer, isForwarded]).toEqual([expected, expected === ALLOWED])
  })

  test.each<[string, string, Record<string, unknown>, string]>([
    ['claims of a token', '"admin" in jwt.groups', { jwt: { groups: ['admin'] } }, ALLOWED],
    ['metadata of an API key (row 38)', 'apiKey.group == "sales"', { apiKey: { group: 'sales' } }, ALLOWED],
    ['another group (row 38)', 'apiKey.group == "sales"', { apiKey: { group: 'hr' } }, DENIED],
    ['metadata that is missing', 'apiKey.group == "sales"', {}, DENIED],
    ['the address of the client', 'cidr("127.0.0.0/8").containsIP(source.address)', {}, ALLOWED],
  ])('can use %s', async (_, expression, values, expected) => expect((await send([rules('Allow', expression)], { values })).answer).toBe(expected))

  test('reads a header that is sent twice as a list, which does not equal one value', async () => {
    const app = mountPolicies([compile([rules('Allow', 'request.headers["x-team"] == "sales"')])], {
      prepare: ({ request }) => ['sales', 'other'].forEach((team) => request.headers.append('x-team', team)),
    })
    expect((await app.request('http://host/')).response.status).toBe(403)
  })
})

test('denials of gRPC calls have a grpc-status', async () => {
  const { exchange } = await send([rules('Allow', 'false')], { headers: { 'content-type': 'application/grpc' } })
  expect([exchange.response?.status, exchange.response?.headers.get('grpc-status'), exchange.error?.row.reason]).toEqual([200, '7', 'Authorization'])
})

test('without rules there is no policy', () => expect(compileAuthorization([], createPolicyState())).toBeUndefined())

test('a rule set is compiled once for all routes of its target', () => {
  const state = createPolicyState()
  const set = rules('Allow', 'true')
  compileAuthorization([set], state)
  const [first, second] = [state.kept.get(set, [], () => 'compiled anew'), state.kept.get(set, [], () => 'compiled anew')]
  expect(first).not.toBe('compiled anew')
  expect(second).toBe(first)
})

describe('rules about the body', () => {
  const isChat = rules('Allow', 'json(request.body).model == "chat"')

  test.each([
    ['{"model":"chat"}', ALLOWED],
    ['{"model":"other"}', DENIED],
    ['not JSON', DENIED],
  ])('%s: %s', async (text, expected) => {
    const { answer, exchange } = await send([isChat], { body: new BufferBody(text) })
    expect(answer).toBe(expected)
    expect((await readBody(exchange.request.body, Infinity)).bytes.toString()).toBe(text)
  })

  const nested = (levels: number): string => `{"model":"chat","x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
  const members = (count: number): string =>
    `{"model":"chat","x":[${Array(count - 2)
      .fill('1')
      .join(',')}]}`
  test.each<[string, string, string, JsonLimits | undefined]>([
    ['512 levels', nested(512), ALLOWED, undefined],
    ['513 levels', nested(513), DENIED, undefined],
    ['900,000 levels', nested(900_000), DENIED, undefined],
    ['100,000 members', members(100_000), ALLOWED, undefined],
    ['100,001 members', members(100_001), DENIED, undefined],
    ['513 levels where 600 are allowed', nested(513), ALLOWED, { maxDepth: 600, maxMembers: 1000 }],
    ['11 members where 10 are allowed', members(11), DENIED, { maxDepth: 600, maxMembers: 10 }],
  ])('json() of a body with %s is limited', async (_, text, expected, limits) => {
    expect((await send([isChat], { body: new BufferBody(text), ...(limits && { limits }) })).answer).toBe(expected)
  })

  test('json() of a large body is parsed while other requests are served', async () => {
    let turns = 0
    let isDone = false
    const count = (): void => {
      turns++
      if (!isDone) setImmediate(count)
    }
    setImmediate(count)
    const text = `{"model":"chat",${Array.from({ length: 90_000 }, (_, i) => `"k${i}":${i}`).join(',')}}`
    expect((await send([isChat], { body: new BufferBody(text) })).answer).toBe(ALLOWED)
    isDone = true
    expect(turns).toBeGreaterThan(3)
  })

  test('integers of 64 bits in a body are compared exactly', async () => {
    const sendId = async (id: string) =>
      (await send([rules('Allow', 'json(request.body).id == 9007199254740992')], { body: new BufferBody(`{"id":${id}}`) })).answer
    expect([await sendId('9007199254740992'), await sendId('9007199254740993')]).toEqual([ALLOWED, DENIED])
  })

  const large = 3 * 1024 * 1024
  test('a body of 3 MiB fails the expression (row 67)', async () => {
    const body = new LongBody(large)
    const { answer } = await send([rules('Allow', 'size(request.body) > 0')], { body })
    // Nothing reads the body any more: the connection may close.
    expect([answer, body.isCancelled]).toEqual([DENIED, true])
  })

  test('the first 2 MiB of a body can be used, and all of it is forwarded (row 67)', async () => {
    const policy = compile([rules('Allow', 'size(request.bodyPrefix) == 2097152')])
    const exchange = testExchange({ method: 'POST', body: new LongBody(large) })
    let received = 0
    await policy({ var: { exchange } } as Parameters<typeof policy>[0], async () => {
      expect(exchange.request.body?.length).toBe(large)
      received = (await readBody(exchange.request.body, Infinity)).bytes.length
    })
    expect(received).toBe(large)
  })

  test('the body is not read before the upstream reads it if no rule uses it (row 67)', async () => {
    const body = new ManualBody()
    const { answer, exchange } = await send([rules('Allow', 'request.method == "GET"')], { body })
    expect([answer, body.asked, exchange.request.body]).toEqual([ALLOWED, [], body])
  })

  test('the body of a rejected request is cancelled', async () => {
    const body = new LongBody(large)
    const { answer } = await send([rules('Allow', 'size(request.bodyPrefix) > 0')], { body })
    // The upstream of this test responds without reading.
    expect([answer, body.isCancelled]).toEqual([ALLOWED, true])
  })
})
