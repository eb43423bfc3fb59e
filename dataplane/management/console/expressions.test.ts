import { OpenAPIHono } from '@hono/zod-openapi'
import { describe, expect, test } from '@jest/globals'
import type { EvaluateResult, ExpressionCatalog } from '#api/management/expressions.ts'
import type { ConsoleApp } from './context.ts'
import { registerExpressions } from './expressions.ts'

const app: ConsoleApp = new OpenAPIHono()
registerExpressions(app)

async function post(body: unknown): Promise<{ status: number; result: EvaluateResult & { error: unknown } }> {
  const response = await app.request('/api/v1/expressions/evaluate', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, result: (await response.json()) as EvaluateResult }
}

const sample = {
  method: 'POST',
  url: 'https://shop.example:8443/cart?item=7',
  headers: [
    ['X-User', 'bob'],
    ['cookie', 'a=1; b=2'],
  ],
  body: '{"n":1}',
  source: { address: '10.1.2.3', port: 4000 },
  response: { code: 503, headers: [['x-a', '1']], body: 'no' },
  variables: { jwt: { sub: 'alice', id: 7 } },
}

describe('the evaluation of an expression with a sample', () => {
  test.each([
    ['request.method + request.path', 'request', '"POST/cart"'],
    ['request.headers["x-user"]', 'request', '"bob"'],
    ['request.headers.cookie("b")', 'request', '"2"'],
    ['request.uri.query("item")', 'request', '["7"]'],
    ['request.host + request.scheme', 'request', '"shop.example:8443https"'],
    ['json(request.body).n + jwt.id', 'request', '8'],
    ['cidr("10.0.0.0/8").containsIP(source.address)', 'network', 'true'],
    ['response.code >= 500 && string(response.body) == "no"', 'response', 'true'],
    ['has(apiKey.key) || llm != null', 'log', 'false'],
    ['uuid().size()', 'request', '36'],
  ])('of %s in phase %s is %s', async (expression, phase, value) => {
    const { result } = await post({ expression, phase, sample })
    expect(result).toMatchObject({ value, error: null, problems: [] })
    expect(result.evaluations).toBeGreaterThan(0)
  })

  test('returns the type and the variables that it reads', async () => {
    const { result } = await post({ expression: 'duration("1m")' })
    expect(result).toMatchObject({ type: 'google.protobuf.Duration', isTruncated: false })
    expect((await post({ expression: 'request.body.size() > 1', sample })).result.reads).toContain('request.body')
  })

  test('returns problems with their places', async () => {
    const { result } = await post({ expression: 'true &&\n  reqest.path == "/"' })
    expect(result.problems).toMatchObject([{ offset: 10, line: 2, column: 3 }])
    expect((await post({ expression: 'response.code', phase: 'request' })).result.problems).toHaveLength(1)
    expect((await post({ expression: '1 +' })).result).toMatchObject({ value: null, problems: [{ line: 1 }], error: { line: 1 } })
  })

  test('returns the place of an error of the evaluation', async () => {
    const { result } = await post({ expression: '1 + 1 / 0' })
    expect(result).toMatchObject({ problems: [], value: null, type: null, error: { message: 'division by zero', line: 1 } })
  })

  test('ends within its budget', async () => {
    const list = `[${'1,'.repeat(100)}1]`
    const { result } = await post({ expression: `${list}.all(a, ${list}.all(b, ${list}.all(c, ${list}.all(d, true))))` })
    expect(result).toMatchObject({ error: { message: 'the expression needs too many steps' } })
  })

  test('cuts a long value', async () => {
    const { result } = await post({ expression: 'string(request.body)', sample: { body: 'a'.repeat(100_000) } })
    expect(result.isTruncated).toBe(true)
    expect(result.value).toHaveLength(65_536)
  })

  test.each([
    ['sample.url', { url: 'file:///etc/passwd' }],
    ['sample.source.address', { source: { address: 'x', port: 1 } }],
  ])('rejects an invalid %s by name', async (field, wrong) => {
    const { status, result } = await post({ expression: 'true', sample: wrong })
    expect(status).toBe(400)
    expect(result.error).toContain(field)
  })

  test('rejects variables with too many levels', async () => {
    const variables = JSON.parse(`${'{"a":'.repeat(2000)}1${'}'.repeat(2000)}`) as object
    expect(await post({ expression: 'true', sample: { variables } })).toMatchObject({
      status: 400,
      result: { error: 'sample.variables: has more than 64 levels' },
    })
  })

  test('rejects a request of more than 1 MiB', async () => {
    expect((await post({ expression: 'true', sample: { body: 'a'.repeat(1_100_000) } })).status).toBe(413)
  })

  test('reads no inherited members', async () => {
    const { result } = await post({ expression: 'has(jwt.constructor) || has(request.__proto__)', sample })
    expect(result.value).toBe('false')
  })
})

test('the catalog of expressions lists variables and functions with their documentation', async () => {
  const { variables, functions } = (await (await app.request('/api/v1/expressions/catalog')).json()) as ExpressionCatalog
  expect(variables.find(({ name }) => name === 'response.code')).toMatchObject({ type: 'int', phases: ['response', 'log'] })
  expect(functions.find(({ name }) => name === 'base64.encode')).toMatchObject({ signature: 'base64.encode(v)', isMethod: false })
})
