import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { Transform } from '#gen/config/types.ts'
import { staticTarget } from './testing/gateway.ts'
import { begin, call, initialize, MCP_HEADERS, send, TestBed } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const set = (name: string, value: string): Transform => ({ set: [{ name, value }] })
const textIn = (json: { readonly result?: Record<string, unknown> }): unknown => (json.result?.['content'] as { text: string }[] | undefined)?.[0]?.text
const tool = async (text: string) => bed.answering(({ method }) => (method === 'tools/call' ? { content: [{ type: 'text', text }] } : undefined))
const echo = call('tools/call', { name: 'echo', arguments: {} })

describe('backend.transformation on targets', () => {
  test.each([
    ['JSON', true, 'application/json'],
    ['an event stream', false, 'text/event-stream'],
  ])('response headers set for a single target reach the client: %s', async (_, isJson, type) => {
    const one = await bed.upstream('one', { isJson })
    const response = {
      set: [
        { name: 'x-method', value: 'request.headers["mcp-method"]' },
        { name: 'cache-control', value: '"public"' },
      ],
      add: [{ name: 'x-code', value: 'response.code' }],
    }
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] }, policies: { transformation: { response } } })
    const { post } = await begin(url)
    const { status, headers } = await post(echo)
    expect([status, headers['content-type'], headers['x-method'], headers['x-code']]).toEqual([200, type, 'tools/call', '200'])
    expect(headers['cache-control']).not.toBe('public')
  })

  test('response headers of several targets do not reach the client, and each status applies to its target', async () => {
    const [a, b] = [await tool('a'), await tool('b')]
    const policies = (name: string) => ({ transformation: { response: set('x-from', `"${name}"`) } })
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', a.port, { policies: policies('a') }), staticTarget('b', b.port)] } })
    const { post } = await begin(url)
    const answer = await post(call('tools/call', { name: 'a_echo' }))
    expect([textIn(answer.json), answer.headers['x-from']]).toEqual(['a', undefined])
  })

  test('a changed status is used, and the response is passed on with it', async () => {
    const { port } = await tool('x')
    const { url } = await bed.gateway({
      mcp: { targets: [staticTarget('a', port)] },
      policies: { transformation: { response: set(':status', 'request.headers["mcp-method"] == "tools/call" ? 429 : response.code') } },
    })
    const { post } = await begin(url)
    expect((await post(echo)).status).toBe(429)
  })

  test('the body of a JSON response can be read and replaced', async () => {
    const { port } = await tool('secret')
    const { url } = await bed.gateway({
      mcp: { targets: [staticTarget('a', port)] },
      policies: { transformation: { response: { body: 'string(response.body).replace("secret", "hidden")', ...set('x-bytes', 'size(response.body)') } } },
    })
    const { post } = await begin(url)
    const { status, json, headers } = await post(echo)
    expect([status, textIn(json), Number(headers['x-bytes']) > 10]).toEqual([200, 'hidden', true])
  })

  test('responses of several targets are transformed before they are merged', async () => {
    const named = (name: string) => bed.answering(({ method }) => (method === 'tools/list' ? { tools: [{ name, inputSchema: {} }] } : undefined))
    const [a, b] = [await named('secret'), await named('secret')]
    const policies = { transformation: { response: { body: 'string(response.body).replace("secret", "hidden")' } } }
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', a.port, { policies }), staticTarget('b', b.port)] } })
    const { post } = await begin(url)
    expect((await post(call('tools/list'))).json.result?.['tools']).toEqual([
      { name: 'a_hidden', inputSchema: {} },
      { name: 'b_secret', inputSchema: {} },
    ])
  })

  test.each([
    ['replaces it', { body: '"{}"' }],
    ['reads it', set('x-size', 'size(response.body)')],
  ])('an event stream is rejected if the transformation of its body %s', async (_, response: Transform) => {
    const one = await bed.upstream('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] }, policies: { transformation: { response } } })
    const { status, json } = await send(url, 'POST', MCP_HEADERS, initialize())
    expect([status, json.error]).toEqual([
      500,
      {
        code: -32603,
        message: 'transformation.response is about the body, and an event stream has none to transform: use headers and the status',
      },
    ])
  })

  test('a replaced request body is sent to the target at each attempt', async () => {
    const bodies: unknown[] = []
    const { port } = await bed.scripted((_, response, body) => {
      bodies.push(body?.params?.['name'])
      response.writeHead(503).end()
    })
    const { url } = await bed.gateway({
      mcp: { targets: [staticTarget('a', port)], sessionRouting: 'Stateful' },
      policies: {
        transformation: {
          request: { body: 'string(request.body).replace("2025-06-18", "2025-03-26").replace("\\"params\\":{", "\\"params\\":{\\"name\\":\\"new\\",")' },
        },
      },
      attached: [{ target: { kind: 'Gateway', namespace: 'ns', name: 'gw' }, traffic: { retry: { codes: [503], attempts: 1, backoff: '1ms' } } }],
    })
    expect((await send(url, 'POST', MCP_HEADERS, initialize())).status).toBe(503)
    expect(bodies).toEqual(['new', 'new'])
  })

  test('policies attached to the backend or to a selector entry apply to the selected targets', async () => {
    const found = await bed.upstream('found')
    const backend = { kind: 'Backend', namespace: 'ns', name: 'mcp' } as const
    const { url } = await bed.gateway({
      mcp: { targets: [{ name: 'entry', selector: { targets: [{ name: 'svc', service: 'ns/svc', port: 80, protocol: 'StreamableHTTP' }] } }] },
      services: { 'ns/svc': [found.address] },
      attached: [
        { target: backend, backend: { auth: { key: 'of-backend' }, transformation: { request: set('x-by', '"backend"') } } },
        { target: { ...backend, section: 'entry' }, backend: { transformation: { request: set('x-by', '"entry"') } } },
      ],
    })
    await begin(url)
    expect([found.received[0]?.headers['authorization'], found.received[0]?.headers['x-by']]).toEqual(['Bearer of-backend', 'entry'])
  })
})
