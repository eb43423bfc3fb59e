import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { McpTools, MCPBackend } from '#gen/config/types.ts'
import { createHash } from 'node:crypto'
import { staticTarget, type GatewayConfig } from '../testing/gateway.ts'
import { begin, call, MCP_HEADERS, send, TestBed, type RawAnswer, type ScriptedBody } from '../testing/test-bed.ts'
import { compilePattern } from './pattern.ts'
import { portableName } from './portable.ts'
import { withoutProperties } from './schema.ts'
import { compileToolView } from './view.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const names = ({ json }: RawAnswer): unknown[] => toolsIn(json.result ?? {}).map(({ name }) => name)
const toolsIn = ({ tools }: { readonly tools?: unknown }) => tools as { name: unknown }[]
/** The JSON text of a result. */
const contentOf = ({ json }: RawAnswer): unknown => {
  const [first] = (json.result?.['content'] ?? []) as { text: string }[]
  return JSON.parse(first?.text ?? 'null') as unknown
}
const inputSchema = { type: 'object', properties: { owner: { type: 'string' }, query: { type: 'string' } }, required: ['owner', 'query'] }

/** A server whose tools return the params of the call. */
async function server(tools: readonly string[]) {
  const calls: ScriptedBody[] = []
  const { port } = await bed.answering((body) => {
    if (body.method === 'tools/list') return { tools: tools.map((name) => ({ name, description: `does ${name}`, inputSchema })) }
    if (body.method !== 'tools/call') return undefined
    calls.push(body)
    return { content: [{ type: 'text', text: JSON.stringify(body.params) }] }
  })
  return { port, calls }
}

type Post = (body: unknown, headers?: Record<string, string>) => Promise<RawAnswer>
type TargetConfig = readonly [name: string, tools: readonly string[], view?: McpTools]

async function start(targets: readonly TargetConfig[], mcp: Partial<MCPBackend> = {}, config: GatewayConfig = {}) {
  const servers = await Promise.all(targets.map(([, tools]) => server(tools)))
  const entries = targets.map(([name, , tools], index) => ({ ...staticTarget(name, servers[index]?.port ?? 0), ...(tools && { tools }) }))
  const gateway = await bed.gateway({ ...config, mcp: { targets: entries, ...mcp } })
  const post: Post = mcp.sessionRouting === 'Stateless' ? (body) => send(gateway.url, 'POST', MCP_HEADERS, body) : (await begin(gateway.url)).post
  const callTool = async (name: string, args?: unknown): Promise<unknown> => {
    const answer = await post(call('tools/call', { name, ...(args === undefined ? {} : { arguments: args }) }))
    return answer.json.error?.message ?? contentOf(answer)
  }
  return { servers, gateway, post, callTool, list: async () => names(await post(call('tools/list'))) }
}

describe('tools of a target', () => {
  test.each([
    [{ include: ['get_*', 'list'] }, ['get_a', 'get_b', 'list']],
    [{ exclude: ['*_b'] }, ['get_a', 'list', 'delete']],
    [{ include: ['get_*', 'delete'], exclude: ['delete', 'get_b'] }, ['get_a']],
    [{ include: ['nothing'] }, []],
  ])('selected by %j are listed and called, and others are unknown', async (tools, expected) => {
    const all = ['get_a', 'get_b', 'list', 'delete']
    const { list, callTool, servers } = await start([['a', all, tools]])
    expect(await list()).toEqual(expected)
    for (const name of all) expect(await callTool(name)).toEqual(expected.includes(name) ? { name } : `Unknown tool: ${name}`)
    expect(servers[0]?.calls.map(({ params }) => params?.['name'])).toEqual(expected)
  })

  test('have the names and descriptions of the config, and are called by their own', async () => {
    const { post, callTool } = await start([['a', ['search_v2', 'other'], { overrides: [{ name: 'search_v2', rename: 'search', description: 'Finds.' }] }]])
    const { json } = await post(call('tools/list'))
    expect(json.result?.['tools']).toEqual([
      { name: 'search', description: 'Finds.', inputSchema },
      { name: 'other', description: 'does other', inputSchema },
    ])
    expect(await callTool('search', { query: 'x' })).toEqual({ name: 'search_v2', arguments: { query: 'x' } })
    expect(await callTool('search_v2')).toBe('Unknown tool: search_v2')
  })

  test('have the prefix of the target before their new name', async () => {
    const { list, callTool } = await start([
      ['a', ['x', 'y'], { overrides: [{ name: 'x', rename: 'new_x' }] }],
      ['b', ['x']],
    ])
    expect(await list()).toEqual(['a_new_x', 'a_y', 'b_x'])
    expect(await callTool('a_new_x')).toEqual({ name: 'x' })
    expect(await callTool('a_x')).toBe('Unknown tool: a_x')
    expect(await callTool('b_x')).toEqual({ name: 'x' })
  })

  test('are looked up by their new name with prefixMode Never', async () => {
    const { list, callTool } = await start(
      [
        ['a', ['x', 'y'], { overrides: [{ name: 'x', rename: 'z' }] }],
        ['b', ['x', 'y']],
      ],
      { prefixMode: 'Never' },
    )
    expect(await list()).toEqual(['z', 'x'])
    expect(await callTool('z')).toEqual({ name: 'x' })
    expect(await callTool('x')).toEqual({ name: 'x' })
    expect(await callTool('y')).toBe('tool y is served by multiple targets')
  })

  test('hide a tool of the server that has the new name of another', async () => {
    const { list, callTool } = await start([['a', ['x', 'search'], { overrides: [{ name: 'x', rename: 'search' }] }]])
    expect(await list()).toEqual(['search'])
    expect(await callTool('search')).toEqual({ name: 'x' })
  })

  test('with one new name for two tools are not offered', async () => {
    const overrides = [
      { name: 'x', rename: 'z' },
      { name: 'y', rename: 'z' },
    ]
    const { list, callTool } = await start([['a', ['x', 'y', 'z', 'w'], { overrides }]])
    expect(await list()).toEqual(['w'])
    for (const name of ['x', 'y', 'z']) expect(await callTool(name)).toBe(`Unknown tool: ${name}`)
  })

  test('receive fixed arguments, which clients do not see and cannot change', async () => {
    const overrides = [
      {
        name: 'x',
        arguments: { owner: 'acme', tags: ['a', { b: 1 }], team: 'overridden' } as never,
        computedArguments: { team: 'request.headers["x-team"]', limits: '{"most": 3, "list": [1, 2.5]}' },
      },
    ]
    const { post, callTool } = await start([['a', ['x'], { overrides }]])
    expect((await post(call('tools/list'))).json.result?.['tools']).toMatchObject([
      { inputSchema: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] } },
    ])
    const answer = await post(call('tools/call', { name: 'x', arguments: { query: 'q', owner: 'evil' } }), { 'x-team': 'red' })
    expect(contentOf(answer)).toEqual({
      name: 'x',
      arguments: { query: 'q', owner: 'acme', tags: ['a', { b: 1 }], team: 'red', limits: { most: 3, list: [1, 2.5] } },
    })
    expect(await callTool('x', { query: 'q' })).toBe('the gateway could not compute an argument of the tool')
    expect(await callTool('x', { Owner: 'evil' })).toMatch(/^params\.arguments has Owner/)
    expect(await callTool('x', 'text')).toBe('params.arguments must be an object')
  })

  test('are checked by rules and counted by their names and arguments on the server', async () => {
    const overrides = [{ name: 'x', rename: 'shown', arguments: { owner: 'acme' } as never }]
    const expression = 'mcp.tool.name == "x" && (!has(mcp.tool.arguments) || mcp.tool.arguments.owner == "acme")'
    const policies = { mcp: { authorization: { policy: { matchExpressions: [expression] } } } }
    const { list, callTool, gateway } = await start([['a', ['x', 'y'], { overrides }]], {}, { policies })
    expect(await list()).toEqual(['shown'])
    expect(await callTool('shown', { owner: 'other' })).toEqual({ name: 'x', arguments: { owner: 'acme' } })
    expect(await callTool('y')).toBe('Unknown tool: y')
    expect([...gateway.registry.expose('text')].join('')).toMatch(/proxy_mcp_requests_total\{method="tools\/call",resource_type="tool",server="a",resource="x"/)
  })

  test('that rules deny are unknown although an argument cannot be computed', async () => {
    const overrides = [{ name: 'x', computedArguments: { owner: 'jwt.sub' } }]
    const policies = { mcp: { authorization: { action: 'Deny' as const, policy: { matchExpressions: ['mcp.tool.name == "x"'] } } } }
    const { callTool } = await start([['a', ['x'], { overrides }]], {}, { policies })
    expect(await callTool('x')).toBe('Unknown tool: x')
    expect(await callTool('x', 'text')).toBe('Unknown tool: x')
  })

  test('cannot be reached by unknown methods', async () => {
    const { post } = await start([['a', ['x'], { include: ['y'] }]])
    expect((await post(call('tools/run', { name: 'x' }))).json.error).toMatchObject({ code: -32601 })
  })
})

describe('toolNames Portable', () => {
  const long = 'x'.repeat(70)
  const digest = (name: string) => createHash('sha256').update(name).digest('hex').slice(0, 8)

  test('shortens names that LLM APIs reject, and leaves the others unchanged', () => {
    expect(['plain', 'a-b_C9', 'x'.repeat(64)].map(portableName)).toEqual(['plain', 'a-b_C9', 'x'.repeat(64)])
    expect(portableName('a.b')).toBe(`a_b_${digest('a.b')}`)
    expect(portableName(long)).toBe(`${'x'.repeat(55)}_${digest(long)}`)
    expect(portableName('é/😀')).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
    expect(portableName('')).toMatch(/^_[0-9a-f]{8}$/)
  })

  test.each([['Stateful'], ['Stateless']] as const)('calls reach the tools that names stand for in a new session: %s', async (sessionRouting) => {
    const targets: TargetConfig[] = [
      ['one.two', ['get', 'a.b'], { overrides: [{ name: 'get', rename: 'fetch' }] }],
      ['b', [long, 'c_00000000']],
    ]
    const { list, callTool, gateway } = await start(targets, { toolNames: 'Portable', sessionRouting })
    // The first calls come before any list.
    expect(await callTool(`one_two_a_b_${digest('one.two_a.b')}`)).toEqual({ name: 'a.b' })
    expect(await callTool('b_c_00000000')).toEqual({ name: 'c_00000000' })
    const shown = ['one_two_fetch_' + digest('one.two_fetch'), 'one_two_a_b_' + digest('one.two_a.b'), portableName(`b_${long}`), 'b_c_00000000']
    expect(await list()).toEqual(shown)
    for (const [index, name] of ['get', 'a.b', long].entries()) expect(await callTool(shown[index] ?? '')).toEqual({ name })
    expect(await callTool('b_y_11111111')).toEqual({ name: 'y_11111111' })
    expect([...gateway.registry.expose('text')].join('')).toContain('resource="a.b"')
  })

  test('names stay known after a change of the config', async () => {
    const { gateway, callTool, list, servers } = await start([['a', ['a.b']]], { toolNames: 'Portable' })
    const [name = ''] = await list()
    gateway.configure({ mcp: { targets: [staticTarget('a', servers[0]?.port ?? 0)], toolNames: 'Portable', failureMode: 'FailOpen' } })
    expect(await callTool(String(name))).toEqual({ name: 'a.b' })
  })

  test('denied tools are unknown under their new names too', async () => {
    const policies = { mcp: { authorization: { action: 'Deny' as const, policy: { matchExpressions: ['mcp.tool.name == "a.b"'] } } } }
    const { list, callTool } = await start([['a', ['a.b', 'c.d']]], { toolNames: 'Portable' }, { policies })
    expect(await list()).toEqual([portableName('c.d')])
    expect(await callTool(portableName('a.b'))).toBe(`Unknown tool: ${portableName('a.b')}`)
    expect(await callTool(portableName('c.d'))).toEqual({ name: 'c.d' })
  })
})

test.each([
  ['*', 'anything', true],
  ['a*', 'a', true],
  ['a*a', 'a', false],
  ['*b*', 'abc', true],
  ['a*b*c', 'a-c-b', false],
  ['a*b*c', 'a-b-c', true],
  ['a*bb*b', 'abb', false],
  ['a.c', 'abc', false],
])('the pattern %s applied to %s matches: %s', (pattern, name, isMatch) => expect(compilePattern(pattern)(name)).toBe(isMatch))

test('a pattern with many stars takes time in proportion to the name', () => {
  const matches = compilePattern(`${'*a'.repeat(60)}*b`)
  expect(matches('a'.repeat(100_000))).toBe(false)
})

test('hidden arguments disappear from conditions of the schema too', () => {
  const schema = {
    type: 'object',
    properties: { owner: {}, b: {} },
    required: ['owner', 'b'],
    dependentRequired: { owner: ['b'], b: ['owner', 'c'] },
    anyOf: [{ required: ['owner'] }, { properties: { owner: {}, c: {} } }],
    if: { required: ['owner'] },
    additionalProperties: false,
  }
  expect(withoutProperties(schema, new Set(['owner']))).toEqual({
    type: 'object',
    properties: { b: {} },
    required: ['b'],
    dependentRequired: { b: ['c'] },
    anyOf: [{ required: [] }, { properties: { c: {} } }],
    if: { required: [] },
    additionalProperties: false,
  })
  expect(withoutProperties(true, new Set(['owner']))).toBe(true)
})

test('members named like those of Object.prototype are names like others', () => {
  const view = compileToolView({ overrides: [{ name: 'constructor', arguments: JSON.parse('{"__proto__":1}') as never }] })
  expect(view.serverName('toString')).toBe('toString')
  expect(JSON.stringify(view.argumentsOf('constructor', {}, undefined as never))).toBe('{"__proto__":1}')
})
