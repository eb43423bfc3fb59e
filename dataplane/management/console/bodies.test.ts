import { expect, test } from '@jest/globals'
import { createLogging } from '../../observe/telemetry/log.ts'
import { createConsoleApp } from './app.ts'
import type { ConsoleContext } from './context.ts'

const writer = { dropped: 0, write: () => true, flush: () => Promise.resolve(), flushSync: () => undefined }
const app = createConsoleApp({ version: '1', logging: createLogging({ writer }), snapshot: () => ({ listeners: new Map() }) } as unknown as ConsoleContext)
const document = (await (await app.request('/openapi.json')).json()) as { paths: Record<string, Record<string, { requestBody?: object }>> }
const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).flatMap(([method, { requestBody }]) => (requestBody === undefined ? [] : [[method.toUpperCase(), path] as const])),
)

const bodies: readonly (readonly [name: string, body: string, type: string])[] = [
  ['no body', '', 'application/json'],
  ['broken JSON', '{"a": 1,\n"b": }', 'application/json'],
  ['JSON that ends too early', '{"a"', 'application/json'],
  ['another content type', '{"a": 1}', 'text/plain'],
  ['a form', 'a=1', 'application/x-www-form-urlencoded'],
  ...['null', '[]', '1', '"text"', '{}', '{"level":{},"method":[],"listener":7,"headers":{},"expression":null,"body":true}'].map(
    (body) => ['wrong types: ' + body, body, 'application/json'] as const,
  ),
]

test('a 429 says when to try again', async () => {
  const threads = () => Promise.reject(new RangeError('16 tails are open already: close one of them'))
  const context = { version: '1', logging: createLogging({ writer }), snapshot: () => ({ listeners: new Map() }), threads }
  const response = await createConsoleApp(context as unknown as ConsoleContext).request('/api/v1/requests?tail=t')
  expect([response.status, response.headers.get('retry-after')]).toEqual([429, '5'])
})

test('the description has calls with bodies', () => {
  expect(calls).toEqual(
    expect.arrayContaining([
      ['POST', '/api/v1/try'],
      ['PUT', '/api/v1/log-level'],
    ]),
  )
})

test.each(calls)('%s %s rejects bodies that it cannot read with 400 or 415 and an error', async (method, path) => {
  for (const [name, body, type] of bodies) {
    const response = await app.request(path, { method, headers: { 'content-type': type }, body })
    expect([name, response.status, await response.json()]).toEqual([
      name,
      type === 'application/json' || body === '' ? 400 : 415,
      { error: expect.stringMatching(/./) },
    ])
  }
  const broken = await app.request(path, { method, headers: { 'content-type': 'application/json' }, body: '{"a": 1,\n"b": }' })
  expect(await broken.json()).toEqual({ error: expect.stringMatching(/^body: is not JSON: .*(?:position|line|token)/) })
})

test.each(calls)('%s %s rejects a body that is too long with 413, with and without a length, and stops reading it', async (method, path) => {
  const headers = { 'content-type': 'application/json' }
  const declared = await app.request(path, { method, headers: { ...headers, 'content-length': String(9 << 20) }, body: 'x' })
  expect(declared.status).toBe(413)
  let sent = 0
  const piece = Buffer.alloc(1 << 20, 0x20)
  const body = new ReadableStream({ pull: (controller) => (sent++ < 600 ? controller.enqueue(piece) : controller.close()) })
  const response = await app.request(path, { method, headers, body, duplex: 'half' })
  expect([response.status, await response.json()]).toEqual([413, { error: 'body: is longer than 8 MiB' }])
  expect(sent).toBeLessThan(20)
})
