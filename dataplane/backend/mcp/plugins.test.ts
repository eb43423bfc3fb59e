import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { Plugin } from '#gen/config/types.ts'
import { testGateway } from '../../testing/messages.ts'
import { staticTarget, type GatewayOptions, type McpGateway } from './testing/gateway.ts'
import { begin, call, sendModern, TestBed, type ScriptedBody } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

/** More than a slow machine needs to start a thread. */
const SLOW = 60_000

const plugin = (mcp: string, more: Partial<Plugin> = {}): Plugin => ({
  name: 'p',
  source: { configMapRef: { code: `export default { setup: () => ({ mcp: { ${mcp} } }) }`, file: 'index.ts', owner: 'ns/policy' } },
  limits: { timeout: '50s' },
  ...more,
})

interface Started {
  readonly gateway: McpGateway
  readonly lines: readonly string[]
}

async function start(plugins: readonly Plugin[], options: GatewayOptions): Promise<Started> {
  const lines: string[] = []
  const onLog = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const { attached = [], ...rest } = options
  const gateway = await bed.gateway({ attached: [{ target: testGateway, traffic: { plugins: [...plugins] } }, ...attached], onLog, ...rest })
  return { gateway, lines }
}

interface ToolServer {
  readonly port: number
  /** Calls that the server received. */
  readonly calls: ScriptedBody[]
}

interface ToolServerOptions {
  readonly tools?: readonly object[]
  /** JSON of the result of a call. Default: the arguments as text. */
  readonly result?: string
  readonly isStream?: boolean
}

const inputSchema = { type: 'object' }

/** A server of older revisions with the tools `read` and `write`. */
async function toolServer({
  tools = [
    { name: 'read', inputSchema },
    { name: 'write', inputSchema },
  ],
  result,
  isStream = false,
}: ToolServerOptions = {}): Promise<ToolServer> {
  const calls: ScriptedBody[] = []
  const { port } = await bed.scripted((request, response, body) => {
    if (body?.id === undefined) return void response.writeHead(request.method === 'GET' ? 405 : 202).end()
    let text = JSON.stringify({ protocolVersion: '2025-06-18', serverInfo: { name: 's', version: '1' }, capabilities: { tools: {} } })
    if (body.method === 'tools/list') text = JSON.stringify({ tools })
    if (body.method === 'tools/call') {
      calls.push(body)
      text = result ?? JSON.stringify({ content: [{ type: 'text', text: JSON.stringify(body.params?.['arguments'] ?? null) }] })
    }
    const message = `{"jsonrpc":"2.0","id":${JSON.stringify(body.id)},"result":${text}}`
    const session = body.method === 'initialize' ? { 'mcp-session-id': 's1' } : {}
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json', ...session })
    response.end(isStream ? `id: 7\ndata: ${message}\n\n` : message)
  })
  return { port, calls }
}

type Send = (method: string, params?: Record<string, unknown>) => ReturnType<typeof sendModern>

/** Sends requests as clients of both kinds of revisions do. */
const clients: Readonly<Record<string, (gateway: McpGateway) => Promise<Send>>> = {
  'with sessions': async ({ url }) => {
    const { post } = await begin(url)
    return (method, params) => post(call(method, params))
  },
  'of 2026-07-28': ({ url }) => Promise.resolve((method, params) => sendModern(url, method, params)),
}
const kinds = Object.keys(clients)
const connect = (kind: string, gateway: McpGateway): Promise<Send> => {
  const client = clients[kind]
  if (client === undefined) throw new Error(`no client ${kind}`)
  return client(gateway)
}

const hooksOf = ({ registry }: McpGateway): string[] => [...registry.expose('text')].join('').match(/^proxy_plugin_hooks_total.*$/gm) ?? []

describe('mcp.list of a plugin', () => {
  const code = `list: (tools, { headers }) => tools
    .filter(({ name }) => !name.endsWith('write'))
    .map((tool) => ({ ...tool, description: tool.server + ' for ' + (headers['x-user'] ?? 'all') })).reverse()`

  test.each(kinds)(
    'changes, removes and moves tools of one server and of several, for a client %s',
    async (kind) => {
      const [one, two] = [await toolServer(), await toolServer({ isStream: true })]
      const { gateway } = await start([plugin(code)], { mcp: { targets: [staticTarget('a', one.port)] } })
      const single = await (await connect(kind, gateway))('tools/list')
      expect(single.json.result?.['tools']).toEqual([{ name: 'read', inputSchema, description: 'a for all' }])
      gateway.configure({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', two.port)] } })
      const merged = await (await connect(kind, gateway))('tools/list')
      expect(merged.json.result?.['tools']).toEqual([
        { name: 'b_read', inputSchema, description: 'b for all' },
        { name: 'a_read', inputSchema, description: 'a for all' },
      ])
      expect(hooksOf(gateway)).toEqual(['proxy_plugin_hooks_total{plugin="ns/policy/p",hook="mcp.list",result="passed"} 2'])
    },
    SLOW,
  )

  test(
    'sees no tools that rules deny, in the order of responses: the last plugin first',
    async () => {
      const { port } = await toolServer()
      const append = (text: string): string =>
        `list: (tools) => tools.map((tool) => ({ ...tool, description: (tool.description ?? '') + '${text}' + tools.length }))`
      const authorization = { action: 'Deny' as const, policy: { matchExpressions: ['mcp.tool.name == "write"'] } }
      const plugins = [plugin(append('outer')), plugin(append('inner'), { name: 'q' })]
      const { gateway } = await start(plugins, { mcp: { targets: [staticTarget('a', port)] }, policies: { mcp: { authorization } } })
      const { post } = await begin(gateway.url)
      expect((await post(call('tools/list'))).json.result?.['tools']).toEqual([{ name: 'read', inputSchema, description: 'inner1outer1' }])
    },
    SLOW,
  )

  test(
    'changes what a search of tools finds and describes',
    async () => {
      const { port } = await toolServer({
        tools: [
          { name: 'read', description: 'reads a file', inputSchema },
          { name: 'write', description: 'writes a file', inputSchema },
        ],
      })
      const { gateway } = await start([plugin(`list: (tools) => tools.filter(({ name }) => name !== 'write')`)], {
        mcp: { targets: [staticTarget('a', port)], toolSearch: 'Enabled' },
      })
      const { post } = await begin(gateway.url)
      const found = await post(call('tools/call', { name: 'search_tools', arguments: { query: 'file' } }))
      expect(JSON.stringify(found.json.result)).toContain('reads a file')
      expect(JSON.stringify(found.json.result)).not.toContain('writes a file')
      const described = await post(call('tools/call', { name: 'describe_tool', arguments: { name: 'write' } }))
      expect(described.json.result).toEqual({ content: [{ type: 'text', text: 'Unknown tool: write' }], isError: true })
    },
    SLOW,
  )

  test.each([
    ['adds a tool', `[...tools, { name: 'new', server: 'a', inputSchema: {} }]`, 'the list has no tool \\"new\\" of server \\"a\\"'],
    ['returns a tool twice', `[tools[0], tools[0]]`, 'or it is returned twice'],
    ['renames a tool', `tools.map((tool) => ({ ...tool, name: 'other' }))`, 'the list has no tool \\"other\\"'],
    ['removes an input schema', `tools.map(({ name, server }) => ({ name, server }))`, 'tools[0].inputSchema is no object'],
    ['changes an output schema', `tools.map((tool) => ({ ...tool, outputSchema: { type: 'object' } }))`, 'tools[0].outputSchema is changed'],
    ['returns no list', `({})`, 'the list of tools is no list'],
    ['returns a Response', `new Response('no')`, 'mcp.list cannot return a Response'],
  ])(
    'fails the list if it %s, and with FailOpen changes nothing',
    async (_, output, reason) => {
      const { port } = await toolServer()
      const closed = await start([plugin(`list: (tools) => (${output})`)], { mcp: { targets: [staticTarget('a', port)] } })
      const rejected = await (await begin(closed.gateway.url)).post(call('tools/list'))
      expect([rejected.status, rejected.text]).toEqual([500, 'plugin failed'])
      expect(closed.lines.join('\n')).toContain(reason)
      expect(closed.lines.join('\n')).toContain('"plugin":"ns/policy/p"')
      const isOpen = await start([plugin(`list: (tools) => (${output})`, { failureMode: 'FailOpen' })], {
        mcp: { targets: [staticTarget('a', port), staticTarget('b', port)] },
      })
      const passed = await (await begin(isOpen.gateway.url)).post(call('tools/list'))
      expect(passed.json.result?.['tools']).toHaveLength(4)
    },
    SLOW,
  )
})

describe('mcp.call of a plugin', () => {
  test.each(kinds)(
    'changes the arguments of calls of a client %s, and passes state to mcp.result',
    async (kind) => {
      const code = `
        call(call, { state }) { state.key = call.arguments.key; return { ...call, arguments: { key: '<' + call.server + ' ' + call.tool + '>' } } },
        result(result, { state }) { result.content[0].text = result.content[0].text.replace(/<.*>/, state.key) }`
      const [one, two] = [await toolServer(), await toolServer({ isStream: true })]
      for (const targets of [[staticTarget('b', two.port)], [staticTarget('a', one.port), staticTarget('b', two.port)]]) {
        const { gateway } = await start([plugin(code)], { mcp: { targets } })
        const send = await connect(kind, gateway)
        const { json } = await send('tools/call', { name: targets.length === 1 ? 'read' : 'b_read', arguments: { key: 'k1' } })
        expect(json.result).toMatchObject({ content: [{ type: 'text', text: '{"key":"k1"}' }] })
        expect(two.calls.at(-1)?.params).toMatchObject({ name: 'read', arguments: { key: '<b read>' } })
      }
      expect([one.calls.length, two.calls.length]).toEqual([0, 2])
    },
    SLOW,
  )

  test(
    'changes calls of a server of 2026-07-28, whose messages would pass unread without hooks',
    async () => {
      const seen: unknown[] = []
      const handle = ({ method, params }: { method?: string; params?: Record<string, unknown> }): object | undefined => {
        if (method !== 'tools/call') return undefined
        seen.push(params?.['arguments'])
        return { content: [{ type: 'text', text: 'from the server' }] }
      }
      const { port } = await bed.modern('m', { handle })
      const code = `call: (call) => ({ ...call, arguments: { text: 'changed' } }), result: (result) => ({ ...result, content: [{ type: 'text', text: 'changed' }] })`
      const { gateway } = await start([plugin(code)], { mcp: { targets: [staticTarget('m', port)] } })
      for (const kind of kinds) {
        const { json } = await (await connect(kind, gateway))('tools/call', { name: 'echo', arguments: { text: 'hi' } })
        expect(json.result).toMatchObject({ content: [{ type: 'text', text: 'changed' }] })
      }
      expect(seen).toEqual([{ text: 'changed' }, { text: 'changed' }])
    },
    SLOW,
  )

  test(
    'rejects a call by a Response, whose body is the text of the result',
    async () => {
      const { port, calls } = await toolServer()
      const code = `call: ({ arguments: args }) => args.path === '/etc' ? new Response('not this path', { status: 403 }) : undefined`
      const { gateway } = await start([plugin(code)], { mcp: { targets: [staticTarget('a', port)] } })
      for (const kind of kinds) {
        const send = await connect(kind, gateway)
        const rejected = await send('tools/call', { name: 'read', arguments: { path: '/etc' } })
        expect([rejected.status, rejected.json.result]).toMatchObject([200, { content: [{ type: 'text', text: 'not this path' }], isError: true }])
      }
      expect(calls).toEqual([])
      expect(hooksOf(gateway)).toEqual(['proxy_plugin_hooks_total{plugin="ns/policy/p",hook="mcp.call",result="answered"} 2'])
    },
    SLOW,
  )

  test(
    'does not see calls that rules deny, nor other methods',
    async () => {
      const { port, calls } = await toolServer()
      const authorization = { action: 'Deny' as const, policy: { matchExpressions: ['mcp.tool.name == "write"'] } }
      const { gateway } = await start([plugin(`call() { throw new Error('seen') }`)], {
        mcp: { targets: [staticTarget('a', port)] },
        policies: { mcp: { authorization } },
      })
      const { post } = await begin(gateway.url)
      expect((await post(call('tools/call', { name: 'write', arguments: {} }))).json.error).toEqual({ code: -32602, message: 'Unknown tool: write' })
      // An unknown method could be another way to call a tool.
      expect((await post(call('vendor/call', { name: 'write' }))).json.error).toEqual({ code: -32601, message: 'Method not found: vendor/call' })
      expect([calls, hooksOf(gateway)]).toEqual([[], []])
    },
    SLOW,
  )

  test(
    'times out with 504, and a throw is 500 with the plugin in the log; FailOpen sends the call unchanged',
    async () => {
      const { port, calls } = await toolServer()
      const mcp = { targets: [staticTarget('a', port)] }
      const callOf = async ({ gateway }: Started) => (await begin(gateway.url)).post(call('tools/call', { name: 'read', arguments: { a: 1 } }))
      const never = await callOf(await start([plugin(`call: () => new Promise(() => undefined)`, { limits: { timeout: '200ms' } })], { mcp }))
      expect([never.status, never.text]).toEqual([504, 'plugin timeout'])
      const thrown = await start([plugin(`call() { throw new Error('broken') }`)], { mcp })
      expect((await callOf(thrown)).text).toBe('plugin failed')
      expect(thrown.lines.join('\n')).toContain('mcp.call: index.ts:1:')
      expect((await callOf(await start([plugin(`call: (call) => ({ ...call, arguments: 'x' })`)], { mcp }))).status).toBe(500)
      expect(calls).toEqual([])
      const passed = await callOf(await start([plugin(`call() { throw new Error('broken') }`, { failureMode: 'FailOpen' })], { mcp }))
      expect([passed.status, calls.map(({ params }) => params?.['arguments'])]).toEqual([200, [{ a: 1 }]])
    },
    SLOW,
  )
})

describe('mcp.result of a plugin', () => {
  const tools = [{ name: 'read', inputSchema, outputSchema: { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] } }]
  const result = '{"content":[{"type":"text","text":"raw"}],"structuredContent":{"count":2},"_meta":{"kept":1}}'
  const read = { name: 'read', arguments: {} }

  test.each([false, true])(
    'changes structured content that stays valid (server streams: %s)',
    async (isStream) => {
      const { port } = await toolServer({ tools, result, isStream })
      const code = `result(result) { result.structuredContent.count++; result.content = [{ type: 'text', text: 'read ' + result.server + ' ' + result.tool }] }`
      const { gateway } = await start([plugin(code)], { mcp: { targets: [staticTarget('a', port)] } })
      for (const kind of kinds)
        expect((await (await connect(kind, gateway))('tools/call', read)).json.result).toMatchObject({
          content: [{ type: 'text', text: 'read a read' }],
          structuredContent: { count: 3 },
          _meta: { kept: 1 },
        })
    },
    SLOW,
  )

  test.each([
    [
      'breaks the output schema',
      `{ ...result, structuredContent: { count: 'two' } }`,
      'the result does not match the output schema of the tool: structuredContent.count must be an integer',
    ],
    ['removes structured content', `{ ...result, structuredContent: undefined }`, 'structuredContent is missing: the tool has an output schema'],
    ['returns content that is none', `{ ...result, content: ['text'] }`, 'content must be a list of objects with a type'],
  ])(
    'is rejected if it %s, and the client never receives the result; with FailOpen it receives that of the server',
    async (_, output, reason) => {
      for (const isStream of [false, true]) {
        const { port } = await toolServer({ tools, result, isStream })
        const mcp = { targets: [staticTarget('a', port)] }
        const closed = await start([plugin(`result: (result) => (${output})`)], { mcp })
        const rejected = await (await begin(closed.gateway.url)).post(call('tools/call', read))
        if (isStream) expect(rejected.json.error).toEqual({ code: -32603, message: 'plugin failed' })
        else expect([rejected.status, rejected.text]).toEqual([500, 'plugin failed'])
        expect(closed.lines.join('\n')).toContain(reason)
        const failOpen = await start([plugin(`result: (result) => (${output})`, { failureMode: 'FailOpen' })], { mcp })
        expect((await (await begin(failOpen.gateway.url)).post(call('tools/call', read))).json.result).toEqual(JSON.parse(result))
      }
    },
    SLOW,
  )

  test(
    'keeps numbers that it does not change as they were',
    async () => {
      const { port } = await toolServer({ result: '{"content":[],"structuredContent":{"id":18446744073709551615,"ratio":1.0}}' })
      const code = `result: (result) => ({ ...result, content: [{ type: 'text', text: 'ok' }] })`
      const { gateway } = await start([plugin(code)], { mcp: { targets: [staticTarget('a', port)] } })
      const { post } = await begin(gateway.url)
      const answer = await post(call('tools/call', { name: 'read', arguments: {} }))
      expect(answer.text).toContain('"structuredContent":{"id":18446744073709551615,"ratio":1.0}')
      expect(answer.text).toContain('"text":"ok"')
    },
    SLOW,
  )

  test(
    'may report a failure without structured content, and replaces the result by the body of a Response',
    async () => {
      const { port } = await toolServer({ tools, result })
      const code = (value: string): Plugin => plugin(`result: ({ content }) => (${value})`)
      const mcp = { targets: [staticTarget('a', port)] }
      const failed = await start([code(`{ content, isError: true }`)], { mcp })
      expect((await (await begin(failed.gateway.url)).post(call('tools/call', read))).json.result).toEqual({
        content: [{ type: 'text', text: 'raw' }],
        isError: true,
        _meta: { kept: 1 },
      })
      const replaced = await start([code(`new Response('not shown')`)], { mcp })
      for (const kind of kinds)
        expect((await (await connect(kind, replaced.gateway))('tools/call', read)).json.result).toMatchObject({
          content: [{ type: 'text', text: 'not shown' }],
          isError: true,
        })
    },
    SLOW,
  )

  test(
    'sees results after the guards of the tool, and none of errors',
    async () => {
      const { port } = await toolServer({ result: '{"content":[{"type":"text","text":"ada@example.org"}]}' })
      const { gateway } = await start([plugin(`result(result) { result.content.push({ type: 'text', text: 'seen ' + result.content[0].text }) }`)], {
        mcp: { targets: [staticTarget('a', port)] },
        policies: { mcp: { toolGuards: { output: [{ regex: { builtins: ['Email'] } }] } } },
      })
      const { post } = await begin(gateway.url)
      expect((await post(call('tools/call', read))).json.result?.['content']).toEqual([
        { type: 'text', text: '<EMAIL_ADDRESS>' },
        { type: 'text', text: 'seen <EMAIL_ADDRESS>' },
      ])
      const server = await bed.modern('m', { handle: ({ method }) => (method === 'tools/call' ? { code: -32000 } : undefined) })
      gateway.configure({ mcp: { targets: [staticTarget('m', server.port)] } })
      expect((await sendModern(gateway.url, 'tools/call', { name: 'echo', arguments: {} })).json.error).toMatchObject({ code: -32000 })
      expect(hooksOf(gateway)).toEqual(['proxy_plugin_hooks_total{plugin="ns/policy/p",hook="mcp.result",result="passed"} 1'])
    },
    SLOW,
  )
})

describe('hooks for MCP', () => {
  test(
    'hold for clients of the older transport HTTP+SSE',
    async () => {
      const { port } = await toolServer()
      const code = `list: (tools) => tools.slice(0, 1), call: (call) => ({ ...call, arguments: { a: 2 } }), result(result) { result.content[0].text += '!' }`
      const { gateway } = await start([plugin(code)], { mcp: { targets: [staticTarget('a', port)] } })
      const client = new Client({ name: 'test', version: '1' })
      await client.connect(new SSEClientTransport(new URL('/sse', gateway.url)))
      bed.onClose(() => client.close())
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['read'])
      expect(await client.callTool({ name: 'read', arguments: { a: 1 } })).toEqual({ content: [{ type: 'text', text: '{"a":2}!' }] })
    },
    SLOW,
  )

  test(
    'of a client without sessions have no tasks, whose results would pass unchecked',
    async () => {
      const { port } = await bed.modern('m')
      const { gateway } = await start([plugin(`result: (result) => result`)], { mcp: { targets: [staticTarget('m', port)] } })
      expect((await sendModern(gateway.url, 'tasks/get', { taskId: 't1' })).json.error).toMatchObject({ code: -32601 })
    },
    SLOW,
  )
})
