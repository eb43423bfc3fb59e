import { afterEach, beforeEach, expect, test } from '@jest/globals'
import type { ServerResponse } from 'node:http'
import type { OpenApiTool } from '#gen/config/types.ts'
import { staticTarget } from '../testing/gateway.ts'
import { begin, call, TestBed } from '../testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const inputSchema = { type: 'object' }
const outputSchema = { type: 'object', properties: { items: { type: 'string' } } }
const definition = JSON.stringify({ name: 'list', inputSchema, outputSchema })
const tool: OpenApiTool = { name: 'list', definition, method: 'GET', path: '/items', parameters: [] }
const items = {
  items: [
    { id: 1, title: 'a', secret: 'x' },
    { id: 12345678901234567890n, title: 'b' },
  ],
}
const itemsText = JSON.stringify(items, (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value))

async function start(response: string, answer: (response: ServerResponse) => void) {
  const { port } = await bed.scripted((_, reply) => answer(reply))
  const openapi = { title: 'Items', version: '1', path: '', tools: [tool], response }
  const gateway = await bed.gateway({ mcp: { targets: [{ ...staticTarget('items', port), openapi }] } })
  const { post } = await begin(gateway.url)
  return {
    list: async () => (await post(call('tools/list'))).json.result,
    callTool: async () => (await post(call('tools/call', { name: 'list' }))).json.result,
  }
}

const json = (reply: ServerResponse): void =>
  void reply.writeHead(200, { 'content-type': 'application/json', link: '</items?page=2>; rel="next"' }).end(itemsText)

test.each<[expression: string, result: object]>([
  ['json(response.body).items.map(i, i.title)', { content: [{ type: 'text', text: '["a","b"]' }] }],
  ['json(response.body).items[0].title', { content: [{ type: 'text', text: 'a' }] }],
  [
    '{"first": json(response.body).items[0].id, "status": response.code}',
    { content: [{ type: 'text', text: '{"first":1,"status":200}' }], structuredContent: { first: 1, status: 200 } },
  ],
])('the result of a tool of an HTTP API is %s', async (expression, result) => {
  const { callTool } = await start(expression, json)
  expect(await callTool()).toEqual(result)
})

test('a result is computed from a response with a byte order mark', async () => {
  const { callTool } = await start('json(response.body).a', (reply) => void reply.writeHead(200, { 'content-type': 'application/json' }).end('\ufeff{"a":"b"}'))
  expect(await callTool()).toEqual({ content: [{ type: 'text', text: 'b' }] })
})

test('a tool whose result is computed has no output schema', async () => {
  const { list } = await start('response.body', json)
  expect(await list()).toEqual({ tools: [{ name: 'list', inputSchema }] })
})

test.each(['json(response.body).nothing', 'json(response.body', 'undefined_name'])('a result that %s cannot compute is an error', async (expression) => {
  const { callTool } = await start(expression, json)
  const text = 'The API succeeded, and the gateway could not compute the result from its response'
  expect(await callTool()).toEqual({ content: [{ type: 'text', text }], isError: true })
})

test('a response with an error status is not computed', async () => {
  const { callTool } = await start('"fine"', (reply) => void reply.writeHead(404, { 'content-type': 'text/plain' }).end('no such item'))
  expect(await callTool()).toEqual({ content: [{ type: 'text', text: 'HTTP 404\nno such item' }], isError: true })
})
