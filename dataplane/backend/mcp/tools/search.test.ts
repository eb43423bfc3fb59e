import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { runSync } from '../../../runtime/cooperative.ts'
import type { McpTools, MCPBackend } from '#gen/config/types.ts'
import { staticTarget, type GatewayConfig } from '../testing/gateway.ts'
import { begin, call, MCP_HEADERS, send, sendModern, TestBed, type RawAnswer, type ScriptedBody } from '../testing/test-bed.ts'
import { MAX_INDEXED, ToolIndexes } from './search-index.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

interface ToolDefinition {
  readonly name: string
  readonly description?: string
  readonly inputSchema?: object
}
const tool = (name: string, description: string, properties: object = {}): ToolDefinition => ({
  name,
  description,
  inputSchema: { type: 'object', properties },
})

const github = [
  tool('create_issue', 'Opens an issue in a repository.', { title: { type: 'string' }, labels: { type: 'array' } }),
  tool('list_issues', 'Lists the issues of a repository.', { state: { type: 'string' } }),
  tool('merge_pull_request', 'Merges a pull request.', { method: { type: 'string', description: 'squash, rebase or merge' } }),
]
const mail = [tool('sendMail', 'Sends a message to people.', { recipients: { type: 'array' } }), tool('search', 'Searches the mailbox.')]

interface Content {
  readonly isError?: boolean
  readonly text: string
}

async function start(
  lists: Readonly<Record<string, readonly ToolDefinition[]>>,
  mcp: Partial<MCPBackend> = {},
  config: GatewayConfig = {},
  views: Readonly<Record<string, McpTools>> = {},
) {
  const bodies: ScriptedBody[] = []
  const targets = []
  for (const [name, tools] of Object.entries(lists)) {
    const { port } = await bed.answering((body) => {
      bodies.push(body)
      if (body.method === 'tools/list') return { tools }
      return body.method === 'tools/call' ? { content: [{ type: 'text', text: `${name} ${JSON.stringify(body.params)}` }] } : undefined
    })
    const view = views[name]
    targets.push({ ...staticTarget(name, port), ...(view && { tools: view }) })
  }
  const gateway = await bed.gateway({ ...config, mcp: { targets, toolSearch: 'Enabled', ...mcp } })
  const post = mcp.sessionRouting === 'Stateless' ? (body: unknown) => send(gateway.url, 'POST', MCP_HEADERS, body) : (await begin(gateway.url)).post
  const use = async (name: string, args: unknown): Promise<Content> => {
    const { json }: RawAnswer = await post(call('tools/call', { name, arguments: args }))
    if (json.error !== undefined) return { text: json.error.message, isError: true }
    const [first] = (json.result?.['content'] ?? []) as { text: string }[]
    return { text: first?.text ?? '', ...(json.result?.['isError'] === true && { isError: true }) }
  }
  const find = async (query: string, more: object = {}): Promise<string[]> => {
    const { tools } = JSON.parse((await use('search_tools', { query, ...more })).text) as { tools: { name: string }[] }
    return tools.map(({ name }) => name)
  }
  return { gateway, post, use, find, bodies }
}

describe('with toolSearch, clients', () => {
  test('see three tools and no list of a server is read for them', async () => {
    const { post, bodies } = await start({ github, mail })
    const { json } = await post(call('tools/list'))
    expect(json.result).toMatchObject({ tools: [{ name: 'search_tools' }, { name: 'describe_tool' }, { name: 'call_tool' }] })
    expect(bodies.map(({ method }) => method)).not.toContain('tools/list')
  })

  test.each([['Stateful'], ['Stateless']] as const)('find, describe and call a tool of several targets: %s', async (sessionRouting) => {
    const { use, find } = await start({ github, mail }, { sessionRouting })
    expect(await find('open a new issue')).toEqual(['github_create_issue', 'github_list_issues'])
    expect(JSON.parse((await use('describe_tool', { name: 'github_create_issue' })).text)).toEqual({ ...github[0], name: 'github_create_issue' })
    expect(await use('call_tool', { name: 'github_create_issue', arguments: { title: 'x' } })).toEqual({
      text: 'github {"name":"create_issue","arguments":{"title":"x"}}',
    })
    expect(await use('mail_sendMail', { recipients: [] })).toEqual({ text: 'mail {"name":"sendMail","arguments":{"recipients":[]}}' })
  })

  test('find tools by words of camel case, plurals, arguments and their descriptions', async () => {
    const { find } = await start({ github, mail })
    expect(await find('send mail')).toEqual(['mail_sendMail', 'mail_search'])
    expect(await find('list of issues')).toEqual(['github_list_issues', 'github_create_issue'])
    expect(await find('recipient')).toEqual(['mail_sendMail'])
    expect(await find('squash')).toEqual(['github_merge_pull_request'])
    expect(await find('nothing-like-it')).toEqual([])
    expect(await find('repository', { limit: 1 })).toHaveLength(1)
  })

  test('find only tools that rules allow and the config offers, and cannot call or describe others', async () => {
    const policies = { mcp: { authorization: { action: 'Deny' as const, policy: { matchExpressions: ['mcp.tool.name == "create_issue"'] } } } }
    const { use, find, bodies } = await start({ github, mail }, {}, { policies }, { mail: { exclude: ['sendMail'] } })
    expect(await find('issue')).toEqual(['github_list_issues'])
    expect(await find('send mail')).toEqual(['mail_search'])
    for (const name of ['github_create_issue', 'mail_sendMail', 'other_none']) {
      expect(await use('describe_tool', { name })).toEqual({ text: `Unknown tool: ${name}`, isError: true })
      expect(await use('call_tool', { name })).toEqual({ text: `Unknown tool: ${name}`, isError: true })
    }
    expect(bodies.map(({ method }) => method)).not.toContain('tools/call')
  })

  test('of one backend with different rights share no index', async () => {
    const expression = 'mcp.tool.name != "create_issue" || request.headers["x-team"] == "core"'
    const policies = { mcp: { authorization: { policy: { matchExpressions: [expression] } } } }
    const { post } = await start({ github }, {}, { policies })
    const found = async (team: string): Promise<string> =>
      (await post(call('tools/call', { name: 'search_tools', arguments: { query: 'issue' } }), { 'x-team': team })).text
    for (const team of ['core', 'other', 'core']) expect((await found(team)).includes('create_issue')).toBe(team === 'core')
  })

  test('reach a tool of a server that has the name of a tool of the gateway', async () => {
    const { use, find } = await start({ a: [tool('search_tools', 'Searches a tool shop.'), tool('call_tool', 'Calls a tool maker.')] })
    expect(await find('shop')).toEqual(['search_tools'])
    expect(await use('call_tool', { name: 'search_tools', arguments: { q: 1 } })).toEqual({ text: 'a {"name":"search_tools","arguments":{"q":1}}' })
    expect(await use('call_tool', { name: 'call_tool', arguments: { name: 'x' } })).toEqual({ text: 'a {"name":"call_tool","arguments":{"name":"x"}}' })
  })

  test('of the revision without sessions search and call too', async () => {
    const { gateway } = await start({ github, mail })
    const { json } = await sendModern(gateway.url, 'tools/list')
    expect(json.result).toMatchObject({ resultType: 'complete', tools: [{ name: 'search_tools' }, { name: 'describe_tool' }, { name: 'call_tool' }] })
    const found = await sendModern(gateway.url, 'tools/call', { name: 'search_tools', arguments: { query: 'send mail' } })
    expect(JSON.stringify(found.json.result)).toContain('mail_sendMail')
    const called = await sendModern(gateway.url, 'tools/call', { name: 'call_tool', arguments: { name: 'mail_sendMail', arguments: { to: 'a' } } })
    expect(JSON.stringify(called.json.result)).toContain('sendMail')
  })

  test('search and call the tools of a server without sessions', async () => {
    const { port } = await bed.modern('new')
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', port)], toolSearch: 'Enabled' } })
    const { json } = await sendModern(gateway.url, 'tools/list')
    expect(json.result).toMatchObject({ resultType: 'complete', tools: [{ name: 'search_tools' }, { name: 'describe_tool' }, { name: 'call_tool' }] })
    const found = await sendModern(gateway.url, 'tools/call', { name: 'search_tools', arguments: { query: 'echo' } })
    expect(JSON.stringify(found.json.result)).toContain('echo')
    const called = await sendModern(gateway.url, 'tools/call', { name: 'call_tool', arguments: { name: 'echo', arguments: { text: 'x' } } })
    expect(called.text).toContain('new: x')
  })

  test('get descriptions that are not cut within a character', async () => {
    const { use } = await start({ github: [tool('long', `${'x'.repeat(199)}\u{1f600} y`)] })
    expect(JSON.parse((await use('search_tools', { query: 'long' })).text)).toMatchObject({ tools: [{ description: `${'x'.repeat(199)}\ufffd...` }] })
  })

  test('get an error that names the wrong argument', async () => {
    const { use } = await start({ github })
    expect(await use('search_tools', {})).toEqual({ text: 'params.arguments.query must be a text', isError: true })
    expect(await use('search_tools', { query: 'x', limit: 0 })).toMatchObject({ isError: true })
    expect(await use('search_tools', [])).toMatchObject({ isError: true })
    expect(await use('describe_tool', { name: 1 })).toMatchObject({ isError: true })
    expect(await use('call_tool', {})).toEqual({ text: 'params.arguments.name must be the name of a tool', isError: true })
  })

  test('see new names and portable names everywhere', async () => {
    const views = { 'a.b': { overrides: [{ name: 'create_issue', rename: 'report', description: 'Reports a bug.' }] } }
    const { use, find } = await start({ 'a.b': github }, { toolNames: 'Portable', prefixMode: 'Always' }, {}, views)
    const [name = ''] = await find('bug')
    expect(name).toMatch(/^a_b_report_[0-9a-f]{8}$/)
    expect(JSON.parse((await use('describe_tool', { name })).text)).toMatchObject({ name, description: 'Reports a bug.' })
    expect(await use('call_tool', { name })).toEqual({ text: 'a.b {"name":"create_issue","arguments":{}}' })
  })
})

test('calls through the search are counted and logged as calls of the tool', async () => {
  const { use, find, gateway } = await start({ github })
  await find('issue')
  await use('call_tool', { name: 'create_issue' })
  const text = [...gateway.registry.expose('text')].join('')
  expect(text).toMatch(/proxy_mcp_requests_total\{method="tools\/call",resource_type="tool",server="github",resource="create_issue"[^}]*\} 1/)
  expect(text).toMatch(/proxy_mcp_requests_total\{method="tools\/call",resource_type="unknown",server="unknown",resource="unknown"[^}]*\} 1/)
})

describe('an index', () => {
  const names = (tools: readonly { name: string }[], query: string, indexes = new ToolIndexes()): string[] =>
    runSync(indexes.search(tools as never, query)).map((position) => tools[position]?.name ?? '')

  test('ranks the name before the description, and rare words before frequent ones', () => {
    const tools = [tool('a', 'about invoices'), tool('invoice', 'other'), ...Array.from({ length: 20 }, (_, index) => tool(`list_${index}`, 'list'))]
    expect(names(tools, 'invoice')).toEqual(['invoice', 'a'])
    expect(names(tools, 'list invoice')[0]).toBe('invoice')
  })

  test('is kept while its tools do not change', () => {
    const indexes = new ToolIndexes()
    expect(names([tool('a', 'first')], 'second', indexes)).toEqual([])
    expect(names([tool('a', 'second')], 'second', indexes)).toEqual(['a'])
    expect(names([tool('a', 'first')], 'first', indexes)).toEqual(['a'])
  })

  test('bounds hostile lists and queries', () => {
    const deep = { type: 'object', properties: {} as Record<string, unknown> }
    let level = deep.properties
    for (let depth = 0; depth < 3000; depth++) level['p'] = { properties: (level = {}) }
    const tools = [
      tool('toString', '__proto__ constructor'),
      { name: 'deep', inputSchema: deep },
      tool('long', 'word '.repeat(100_000)),
      ...Array.from({ length: MAX_INDEXED }, (_, index) => tool(`t${index}`, 'filler')),
    ]
    expect(names(tools, 'constructor')).toEqual(['toString'])
    expect(names(tools, 'word '.repeat(10_000))).toEqual(['long'])
    expect(names(tools, `t${MAX_INDEXED - 1}`)).toEqual([])
  })
})
