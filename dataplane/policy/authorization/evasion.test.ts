import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { createPolicyState } from '../state.ts'
import { compileAuthorization } from './index.ts'

const outcomes: Readonly<Record<string, string>> = { AUTHORIZATION: 'denied', AUTHORIZATION_INPUT: 'unreadable' }

/** What a request gets under one Deny rule: forwarded, denied because the rule matches, or rejected because it cannot be evaluated. */
async function send(expression: string, { body, headers = [] }: { body?: Buffer | string; headers?: readonly (readonly [string, string])[] }) {
  const policy = compileAuthorization([{ action: 'Deny', policy: { matchExpressions: [expression] } }], createPolicyState())
  if (policy === undefined) throw new Error('no policy')
  const app = mountPolicies([policy], {
    prepare: ({ request }) => {
      request.body = body === undefined ? undefined : new BufferBody(body)
      for (const [name, value] of headers) request.headers.append(name, value)
    },
  })
  const { response, exchange } = await app.request('http://host/a', { method: 'POST' })
  const outcome = outcomes[exchange.error?.code ?? ''] ?? exchange.error?.code ?? 'forwarded'
  // A rejected request has cancelled its body.
  const received = outcome === 'forwarded' ? (await readBody(exchange.request.body, Infinity)).bytes : undefined
  return { outcome, status: response.status, received }
}

const encoders: readonly (readonly [field: string, encode: (bytes: Buffer) => Buffer])[] = [
  ['gzip', (bytes) => gzipSync(bytes)],
  ['x-gzip', (bytes) => gzipSync(bytes)],
  ['deflate', (bytes) => deflateSync(bytes)],
  ['deflate', (bytes) => deflateRawSync(bytes)],
  ['br', (bytes) => brotliCompressSync(bytes)],
  ['zstd', (bytes) => zstdCompressSync(bytes)],
]

const hasBad = 'json(request.body).items.exists(i, i.name == "bad")'

describe('a Deny rule', () => {
  test('judges a coded body as the plain one, and forwards it as it was sent', async () => {
    const item = fc.oneof(fc.constant({ name: 'bad' }), fc.constant({ name: 'good' }), fc.jsonValue())
    await fc.assert(
      fc.asyncProperty(fc.array(item, { maxLength: 5 }), fc.array(fc.constantFrom(...encoders), { maxLength: 3 }), async (items, codings) => {
        const plain = Buffer.from(JSON.stringify({ items }))
        const coded = codings.reduce<Buffer>((bytes, [, encode]) => encode(bytes), plain)
        const headers = codings.length === 0 ? [] : [['content-encoding', codings.map(([field]) => field).join(', ')] as const]
        const expected = await send(hasBad, { body: plain })
        const actual = await send(hasBad, { body: coded, headers })
        expect(actual.outcome).toBe(expected.outcome)
        if (actual.outcome === 'forwarded') expect(actual.received).toEqual(coded)
        if (items.some((one) => JSON.stringify(one) === '{"name":"bad"}')) expect(actual.outcome).toBe('denied')
      }),
      { numRuns: 40 },
    )
  })

  const bad = '{"items":[{"name":"bad"}]}'
  const pad = (count: number, text: string): string => Array.from({ length: count }, () => text).join(',')
  test.each<[string, Buffer | string]>([
    ['a byte order mark', `\ufeff${bad}`],
    ['UTF-16', Buffer.from(bad, 'utf16le')],
    ['invalid UTF-8', Buffer.concat([Buffer.from(bad.slice(0, -2)), Buffer.from([0xff]), Buffer.from(']}')])],
    ['more than 2 MiB', `{"items":[{"name":"bad"},"${'x'.repeat(3 * 1024 * 1024)}"]}`],
    ['a repeated name', '{"items":[{"name":"bad"}],"items":[]}'],
    ['a repeated name that is escaped', '{"items":[{"name":"bad"}],"it\\u0065ms":[]}'],
    ['a repeated name in an item', '{"items":[{"name":"bad","name":"good"}]}'],
    ['a repeated name in long text', `{"items":[{"name":"bad"}],"x":"${'y'.repeat(100_000)}","items":[]}`],
    ['600 levels', `{"x":${'['.repeat(600)}${']'.repeat(600)},"items":[{"name":"bad"}]}`],
    ['110,000 members', `{"x":[${pad(110_000, '1')}],"items":[{"name":"bad"}]}`],
    ['an item of another type', '{"items":5}'],
    ['text that is not JSON', 'items=bad'],
  ])('rejects a body that it cannot read: %s', async (_, body) => {
    expect(await send(hasBad, { body })).toMatchObject({ outcome: 'unreadable', status: 403 })
  })

  test('rejects or matches 90,000 items, of which the last one is bad', async () => {
    const { outcome } = await send(hasBad, { body: `{"items":[${pad(90_000, '{"name":"a"}').slice(0, 40_000 * 13 - 1)},{"name":"bad"}]}` })
    expect(outcome).not.toBe('forwarded')
  })

  test('rejects what exceeds the cost limit', async () => {
    const body = `{"items":[${pad(3000, '"a"')}]}`
    expect((await send('json(request.body).items.exists(a, json(request.body).items.exists(b, a + b == "bad"))', { body })).outcome).toBe('unreadable')
  })

  test.each<[string, string, string, number, string]>([
    ['a coding that is not known', 'compress', 'x', 415, 'CONTENT_CODING'],
    ['content that does not match its coding', 'gzip', 'x', 400, 'CONTENT_MISMATCH'],
    ['five codings', 'gzip, gzip, gzip, gzip, gzip', 'x', 415, 'CONTENT_CODING'],
  ])('rejects %s', async (_, coding, body, status, outcome) => {
    expect(await send(hasBad, { body, headers: [['content-encoding', coding]] })).toMatchObject({ status, outcome })
  })

  test.each([
    'request.headers.x == "bad"',
    '"bad" == request.headers.x',
    'request.headers.x in ["bad"]',
    'request.headers.x in {"bad": 1}',
    '["bad"].exists(v, request.headers.x == v)',
    'request.headers.x.contains("bad")',
    'request.headers.x.startsWith("b")',
    'request.headers.x.matches("^bad$")',
    'request.headers.x.lowerAscii() == "bad"',
    'size(request.headers.x) == 3',
    'request.headers["X"] != "good"',
    '!(request.headers.x == "good")',
  ])('is not evaded by a repeated header: %s', async (expression) => {
    for (const values of [['bad'], ['bad', 'good'], ['good', 'bad'], ['bad', 'bad']]) {
      const { outcome } = await send(expression, { headers: values.map((value) => ['x', value] as const) })
      expect([values, outcome]).toEqual([values, values.length === 1 ? 'denied' : 'unreadable'])
    }
  })

  test('reads all lines of a repeated header with join(), raw() and split()', async () => {
    const headers = [['x', 'good'] as const, ['x', 'bad, other'] as const]
    for (const expression of [
      '"bad" in request.headers.split().x',
      'request.headers.join().x.contains("bad")',
      'request.headers.raw().x.exists(v, v.contains("bad"))',
    ])
      expect((await send(expression, { headers })).outcome).toBe('denied')
  })

  test.each([
    'request.headers.x == "bad"',
    hasBad,
    'jwt.sub == "bad"',
    'json(request.body).items[0].name == "bad"',
    'request.headers.x == "bad" && request.headers.x.size() > 1',
  ])('does not match what is absent: %s', async (expression) => {
    expect((await send(expression, {})).outcome).toBe('forwarded')
  })

  test.each(['{"items":[]}', '{"items":[{}]}', '{}', '[]', '{"items":[{"name":"good"},{}]}'])('does not match a body without the member: %s', async (body) => {
    expect((await send(hasBad, { body })).outcome).toBe('forwarded')
  })

  test('an operand of || that is absent does not hide one that cannot be read, in any order', async () => {
    for (const expression of ['request.headers.x == "a" || json(request.body).a == "b"', 'json(request.body).a == "b" || request.headers.x == "a"'])
      expect((await send(expression, { body: 'no JSON' })).outcome).toBe('unreadable')
  })

  test('a condition in front of the body keeps other content out of the rule', async () => {
    const expression = `request.headers["content-type"].startsWith("application/json") && ${hasBad}`
    expect((await send(expression, { body: 'a=b', headers: [['content-type', 'application/x-www-form-urlencoded']] })).outcome).toBe('forwarded')
  })

  test('a body that the expression reads by index is not taken for absent', async () => {
    expect((await send('json(request["body"]).role == "bad"', { body: '{"role":"bad"}' })).outcome).toBe('unreadable')
  })

  test.each([
    'json(request.body).items.filter(i, i.name == "bad").size() > 0',
    'json(request.body).items.map(i, i.name).exists(n, n == "bad")',
    '"bad" in json(request.body).items.map(i, i.name)',
    'json(request.body).items.map(i, i.name == "bad", i.name).size() > 0',
    'json(request.body).items.exists_one(i, i.name == "bad")',
    '!json(request.body).items.all(i, i.name != "bad")',
    'json(request.body).items.transformList(n, i, i.name).exists(n, n == "bad")',
    'json(request.body).items.transformMap(n, i, i.name).exists(n, v, v == "bad")',
    'json(request.body).items.sortBy(i, i.name)[0].name == "bad"',
  ])('is not evaded by an element without the member: %s', async (expression) => {
    const expectOutcome = async (body: string, ...allowed: string[]): Promise<void> =>
      expect([body, allowed]).toEqual([body, expect.arrayContaining([(await send(expression, { body })).outcome])])
    await expectOutcome('{"items":[{"name":"bad"}]}', 'denied')
    await expectOutcome('{"items":[{"name":"good"}]}', 'forwarded')
    await expectOutcome('{}', 'forwarded')
    for (const items of ['[{},{"name":"bad"}]', '[{"name":"bad"},{}]']) await expectOutcome(`{"items":${items}}`, 'denied', 'unreadable')
  })

  test('replaces an absence in a loop by default() and coalesce()', async () => {
    for (const name of ['default', 'coalesce']) {
      const expression = `"bad" in ${name}(json(request.body).items.map(i, i.name), ["bad"])`
      expect((await send(expression, { body: '{"items":[{}]}' })).outcome).toBe('denied')
      expect((await send(expression, { body: '{"items":[{"name":"good"}]}' })).outcome).toBe('forwarded')
    }
  })

  test('is not evaded by a value that coalesce() cannot read', async () => {
    const expression = 'coalesce(request.headers.x, "none") == "bad"'
    expect((await send(expression, {})).outcome).toBe('forwarded')
    expect((await send(expression, { headers: [['x', 'bad']] })).outcome).toBe('denied')
    expect((await send('coalesce(request.headers.cookie("a"), "none") == "bad"', { headers: [['cookie', 'a=bad; a=good']] })).outcome).toBe('unreadable')
    const long = `"${'x'.repeat(3 * 1024 * 1024)}"`
    expect((await send('coalesce(json(request.body).role, "none") == "bad"', { body: `{"role":"bad","x":${long}}` })).outcome).toBe('unreadable')
  })

  test.each<[string, readonly string[], string]>([
    ['once', ['a=bad'], 'denied'],
    ['twice with the same value', ['a=bad; a="bad"'], 'denied'],
    ['before another value', ['a=bad; a=good'], 'unreadable'],
    ['behind another value', ['a=good; a=bad'], 'unreadable'],
    ['behind another value, in a line of its own', ['a=good', 'a=bad'], 'unreadable'],
    ['behind an empty value', ['a=; a=bad'], 'unreadable'],
    ['not at all', ['b=bad; A=bad'], 'forwarded'],
  ])('is not evaded by a cookie that is sent %s', async (_, lines, outcome) => {
    const headers = lines.map((line) => ['cookie', line] as const)
    expect((await send('request.headers.cookie("a") == "bad"', { headers })).outcome).toBe(outcome)
  })
})
