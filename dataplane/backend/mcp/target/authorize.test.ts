import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { rawNumber } from '#api/json/index.ts'
import type { Authorization, BackendFull, McpTargetSelector, Policy } from '#gen/config/types.ts'
import { staticTarget, type McpGateway } from '../testing/gateway.ts'
import { begin, call, TestBed } from '../testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const rules = (action: Authorization['action'], ...matchExpressions: string[]): BackendFull => ({
  mcp: { authorization: { ...(action && { action }), policy: { matchExpressions } } },
})
const on = (target: Policy['target'], backend: BackendFull) => ({ target, backend })
const gatewayTarget: Policy['target'] = { kind: 'Gateway', namespace: 'ns', name: 'gw' }
const backendTarget: Policy['target'] = { kind: 'Backend', namespace: 'ns', name: 'mcp' }

interface Levels {
  readonly inline?: BackendFull
  readonly attached?: readonly { readonly target: Policy['target']; readonly backend: BackendFull }[]
  /** Inline policies of target `a`. */
  readonly own?: BackendFull
}

async function start({ inline, attached = [], own }: Levels, count = 2) {
  const servers = [await bed.upstream('one'), await bed.upstream('two')].slice(0, count)
  const targets = servers.map(({ port }, index) => staticTarget(['a', 'b'][index] ?? '', port, index === 0 && own !== undefined ? { policies: own } : {}))
  const gateway = await bed.gateway({ mcp: { targets }, attached, ...(inline && { policies: inline }) })
  return { gateway, servers, client: await bed.client(gateway) }
}

/** The items that a client sees, one letter for each kind and target. */
async function visible(client: Awaited<ReturnType<typeof start>>['client']): Promise<string[]> {
  const [tools, prompts, resources, templates] = [
    await client.listTools(),
    await client.listPrompts(),
    await client.listResources(),
    await client.listResourceTemplates(),
  ]
  return [
    ...tools.tools.map(({ name }) => name),
    ...prompts.prompts.map(({ name }) => name),
    ...resources.resources.map(({ uri }) => uri),
    ...templates.resourceTemplates.map(({ uriTemplate }) => uriTemplate),
  ]
}
const all = (target: string): string[] => [`${target}_echo`, `${target}_with_under_score`, `${target}_link`]
const rest = (target: string): string[] => [`${target}_greet`, `${target}+file:///x`, `${target}+memo:x`, 'relative', `${target}+num://{n}`]
const everything = [...all('a'), ...all('b'), ...rest('a'), ...rest('b')].toSorted()

/** The items that a traced list hides, with the reasons. */
async function hiddenIn(gateway: McpGateway, message: object): Promise<unknown[]> {
  const { post } = await begin(gateway.url)
  const report = gateway.parts.tracer.wait({}, 5000)
  await post(message)
  const { steps = [] } = (await report) ?? {}
  return steps.flatMap(({ kind, name, detail }) => (kind === 'item' ? [[name, detail?.['target'], detail?.['hidden']]] : []))
}

describe('a trace of a list says why an item is hidden:', () => {
  const link = 'mcp.tool.name == "link"'
  test.each<[string, Levels, Partial<McpTargetSelector>, unknown[]]>([
    ['a Deny that matches', { inline: rules('Deny', 'false', link) }, {}, [['tool link', 'a', `a Deny rule matches: ${link}`]]],
    [
      'a Require that does not',
      { inline: rules('Require', 'mcp.tool.name != "link"') },
      {},
      [['tool link', 'a', 'a Require rule does not match: mcp.tool.name != "link"']],
    ],
    [
      'no Allow matches',
      { own: rules(undefined, 'mcp.tool.name == "echo"', 'mcp.tool.name != "link"') },
      {},
      [['tool link', 'a', 'no Allow rule matches: mcp.tool.name == "echo" | mcp.tool.name != "link"']],
    ],
    [
      'a Deny that is not valid',
      { inline: rules('Deny', 'mcp.tool.name ==') },
      {},
      ['echo', 'with_under_score', 'link'].map((name) => [`tool ${name}`, 'a', 'a Deny rule is not valid: mcp.tool.name ==']),
    ],
    ['tools.exclude', {}, { tools: { exclude: ['l*'] } }, [['tool link', 'a', 'a pattern of tools.exclude of the target matches']]],
    [
      'tools.include',
      {},
      { tools: { include: ['echo'] } },
      ['with_under_score', 'link'].map((name) => [`tool ${name}`, 'a', 'no pattern of tools.include of the target matches']),
    ],
    [
      'another tool has its name',
      {},
      { tools: { overrides: [{ name: 'echo', rename: 'link' }] } },
      [['tool link', 'a', 'tools.overrides of the target give its name to another tool']],
    ],
    ['nothing is hidden', {}, {}, []],
  ])('%s', async (_, levels, more, hidden) => {
    const { gateway, servers } = await start(levels, 1)
    const [{ port }] = servers as [(typeof servers)[number]]
    if (more.tools !== undefined) gateway.configure({ mcp: { targets: [{ ...staticTarget('a', port), ...more }] } })
    expect(await hiddenIn(gateway, call('tools/list'))).toEqual(hidden)
  })

  test('the view, with several targets, whose lists arrive after the response head', async () => {
    const { gateway, servers } = await start({ inline: rules('Deny', link) })
    const targets = servers.map(({ port }, index) => staticTarget(['a', 'b'][index] ?? '', port))
    gateway.configure({ mcp: { targets, views: [{ name: 'v', path: '/mcp', tools: { include: ['*_echo'] } }] } })
    const report = await hiddenIn(gateway, call('tools/list'))
    expect(report.toSorted((one, other) => (String(one) < String(other) ? -1 : 1))).toEqual([
      ['tool link', 'a', `a Deny rule matches: ${link}`],
      ['tool link', 'b', `a Deny rule matches: ${link}`],
      ['tool with_under_score', 'a', 'the view of this host and path does not have it'],
      ['tool with_under_score', 'b', 'the view of this host and path does not have it'],
    ])
  })

  test('names that several targets have, and targets that do not respond', async () => {
    const { gateway, servers } = await start({})
    const targets = servers.map(({ port }, index) => staticTarget(['a', 'b'][index] ?? '', port))
    gateway.configure({ mcp: { targets, prefixMode: 'Never' } })
    expect(await hiddenIn(gateway, call('prompts/list'))).toEqual([['prompt greet', '', '2 items have this name']])
    const { port } = await bed.answering((body) =>
      body.method === 'tools/list' ? { jsonrpc: '2.0', id: body.id, error: { code: -32_000, message: 'busy' } } : undefined,
    )
    gateway.configure({ mcp: { targets: [...targets, staticTarget('c', port)], failureMode: 'FailOpen' } })
    expect(await hiddenIn(gateway, call('tools/list'))).toEqual([['target c', 'c', expect.stringMatching(/^the target failed: /)]])
  })

  test('a denied call', async () => {
    const { gateway } = await start({ inline: rules('Deny', link) }, 1)
    expect(await hiddenIn(gateway, call('tools/call', { name: 'link', arguments: {} }))).toEqual([['tool link', 'a', `a Deny rule matches: ${link}`]])
  })
})

describe('lists for clients (mcp.md §7)', () => {
  test.each<[string, Levels, string[]]>([
    ['no rules', {}, everything],
    ['an Allow for tools, which hides prompts and resources (row 35)', { inline: rules(undefined, 'mcp.tool.name == "echo"') }, ['a_echo', 'b_echo']],
    [
      'a Deny leaves the rest (row 35)',
      { inline: rules('Deny', 'mcp.tool.name == "echo" && mcp.tool.target == "a"') },
      everything.filter((name) => name !== 'a_echo'),
    ],
    ['a rule that reads the method (D6)', { inline: rules('Allow', 'mcp.methodName == "prompts/list"') }, ['a_greet', 'b_greet']],
    ['a rule that reads arguments, which lists do not have (D6)', { inline: rules('Allow', 'mcp.tool.arguments.text == "x"') }, []],
    ['a Require rule', { inline: rules('Require', 'mcp.prompt.name == "greet"') }, ['a_greet', 'b_greet']],
    ['a rule for the URI of templates', { inline: rules('Allow', 'mcp.resource.name.startsWith("num:")') }, ['a+num://{n}', 'b+num://{n}']],
    ['an Allow that fails, which allows nothing', { inline: rules('Allow', 'mcp.tool.nothing == 1') }, []],
    ['a Deny that fails, which denies nothing', { inline: rules('Deny', 'mcp.tool.nothing == 1') }, everything],
    ['a Deny that does not compile, which denies everything', { inline: rules('Deny', 'mcp.tool.name ==') }, []],
    ['a Require that does not compile, which denies everything', { inline: rules('Require', 'mcp.tool.name ==') }, []],
    [
      'rules of Gateway, backend and policies on the backend combine (row 35)',
      {
        inline: rules('Allow', 'mcp.tool.target == "a"'),
        attached: [on(gatewayTarget, rules('Deny', 'mcp.tool.name == "link"')), on(backendTarget, rules('Allow', 'mcp.tool.name == "echo"'))],
      },
      ['a_echo', 'a_with_under_score', 'b_echo'],
    ],
    ['rules of one target, which apply to its items only (D1)', { own: rules('Allow', 'mcp.tool.name == "echo"') }, ['a_echo', ...all('b'), ...rest('b')]],
    [
      'and with those of the backend both have to allow',
      { inline: rules('Allow', 'has(mcp.tool)'), own: rules('Deny', 'mcp.tool.name == "echo"') },
      [...all('a').slice(1), ...all('b')],
    ],
    ['policies attached to a target by name', { attached: [on({ ...backendTarget, section: 'b' }, rules('Deny', 'true'))] }, [...all('a'), ...rest('a')]],
    ['a rule that reads the request', { inline: rules('Allow', 'request.headers["x-team"] == "a"') }, []],
  ])('contain the permitted items: %s', async (_, levels, expected) => {
    const { client } = await start(levels)
    expect((await visible(client)).toSorted()).toEqual(expected.toSorted())
  })

  test('are filtered for a single target too', async () => {
    const { client } = await start({ inline: rules('Allow', 'mcp.tool.name == "echo"') }, 1)
    expect(await visible(client)).toEqual(['echo'])
  })
})

describe.each([1, 2])('calls of clients with %i target(s)', (count) => {
  const prefix = count === 1 ? '' : 'a_'
  const uri = count === 1 ? 'memo:x' : 'a+memo:x'

  test('fail for denied items as for unknown ones (row 34)', async () => {
    const { client, servers } = await start(
      { inline: rules('Deny', 'mcp.tool.name == "echo"', 'mcp.prompt.name == "greet"', 'mcp.resource.name == "memo:x"') },
      count,
    )
    const before = servers.map(({ log }) => log().length)
    const denied: [Promise<unknown>, string][] = [
      [client.callTool({ name: `${prefix}echo` }), `Unknown tool: ${prefix}echo`],
      [client.getPrompt({ name: `${prefix}greet` }), `Unknown prompt: ${prefix}greet`],
      [client.readResource({ uri }), `Unknown resource: ${uri}`],
      [client.subscribeResource({ uri }), `Unknown resource: ${uri}`],
      [client.unsubscribeResource({ uri }), `Unknown resource: ${uri}`],
      [client.complete({ ref: { type: 'ref/prompt', name: `${prefix}greet` }, argument: { name: 'n', value: '' } }), `Unknown prompt: ${prefix}greet`],
      [client.complete({ ref: { type: 'ref/resource', uri }, argument: { name: 'n', value: '' } }), `Unknown resource: ${uri}`],
    ]
    for (const [promise, message] of denied) await expect(promise).rejects.toMatchObject({ code: -32602, message: expect.stringContaining(message) })
    expect(servers.map(({ log }) => log().filter((method) => method !== 'GET').length)).toEqual(
      before.map(
        (length, index) =>
          length -
          (servers[index]
            ?.log()
            .slice(0, length)
            .filter((method) => method === 'GET').length ?? 0),
      ),
    )
    expect(await client.callTool({ name: `${prefix}link` })).toBeDefined()
  })

  test('reach the target only if no member is doubled or spelled in another way', async () => {
    const { gateway, servers } = await start({ inline: rules('Deny', 'mcp.tool.name == "echo"') }, count)
    const { post } = await begin(gateway.url)
    const twice = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${prefix}echo","name":"${prefix}link"}}`
    expect(await post(twice)).toMatchObject({ status: 400, json: { error: { code: -32600 } } })
    const deep = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${prefix}link","arguments":{"a":{"b":1,"b":2}}}}`
    expect(await post(deep)).toMatchObject({ status: 400, json: { error: { code: -32600 } } })
    expect((await post(call('tools/call', { name: `${prefix}link`, arguments: {}, Arguments: {} }))).json.error).toMatchObject({ code: -32602 })
    expect((await post(call('tools/call', { name: `${prefix}link` }))).status).toBe(200)
    expect((await post(call('tools/call', { name: `${prefix}link`, Name: `${prefix}echo` }))).json.error).toMatchObject({
      code: -32602,
      message: 'params has Name beside name: remove it',
    })
    expect((await post(call('completion/complete', { ref: { type: 'ref/prompt', name: `${prefix}greet`, NAME: 'x' } }))).json.error).toMatchObject({
      code: -32602,
    })
    const called = servers[0]?.received.filter(({ body }) => body?.method === 'tools/call')
    expect(called?.map(({ body }) => body?.params)).toEqual([{ name: 'link' }])
  })

  test('cannot bypass rules by unknown methods', async () => {
    const { gateway } = await start({ inline: rules('Allow', 'mcp.tool.name == "link"') }, count)
    const { post } = await begin(gateway.url)
    expect((await post(call('tools/run', { name: 'echo' }))).json.error).toMatchObject({ code: -32601 })
    expect((await post(call('ping'))).json.result).toEqual({})
  })
})

test('a rule can read the arguments of a tool call (D6)', async () => {
  const { client } = await start({ inline: rules('Deny', 'mcp.tool.arguments.text == "secret"') }, 1)
  expect(await client.callTool({ name: 'echo', arguments: { text: 'open' } })).toMatchObject({ content: [{ text: 'one: open' }] })
  await expect(client.callTool({ name: 'echo', arguments: { text: 'secret' } })).rejects.toMatchObject({ code: -32602 })
})

test.each([
  ['mcp.tool.arguments.id == 9007199254740993', '9007199254740993', true],
  ['mcp.tool.arguments.id == 9007199254740992', '9007199254740993', false],
  ['mcp.tool.arguments.id > 100', '1000.0', true],
  ['mcp.tool.arguments.id > 100', '1E3', true],
])('a Deny of %s compares the argument %s exactly', async (expression, id, isDenied) => {
  const { gateway } = await start({ inline: rules('Deny', expression) }, 1)
  const { post } = await begin(gateway.url)
  const { error } = (await post(call('tools/call', { name: 'echo', arguments: { id: rawNumber(id) } }))).json
  expect(error?.code).toBe(isDenied ? -32602 : undefined)
})

test.each([
  // An element without the member hides none that has it.
  ['mcp.tool.arguments.items.filter(i, i.kind == "bad").size() > 0', { items: [{}, { kind: 'bad' }] }],
  ['mcp.tool.arguments.items.exists(i, i.kind == "bad")', { items: [{}, { kind: 'bad' }] }],
  ['!mcp.tool.arguments.items.all(i, i.kind != "bad")', { items: [{}, { kind: 'bad' }] }],
  ['"bad" in mcp.tool.arguments.items.map(i, i.kind)', { items: [{}, { kind: 'bad' }] }],
])('a Deny of %s is not evaded by an element without the member', async (expression, given) => {
  const { gateway, servers } = await start({ inline: rules('Deny', expression) }, 1)
  const { post } = await begin(gateway.url)
  expect((await post(call('tools/call', { name: 'echo', arguments: given }))).json.error).toBeDefined()
  expect(servers[0]?.received.filter(({ body }) => body?.method === 'tools/call')).toEqual([])
  expect((await post(call('tools/call', { name: 'echo', arguments: { items: [{ kind: 'good' }] } }))).json.error).toBeUndefined()
})

test('a Deny of a cookie is not evaded by a second one of the name', async () => {
  const { gateway } = await start({ inline: rules('Deny', 'mcp.tool.name == "echo" && request.headers.cookie("team") == "bad"') }, 1)
  const { post } = await begin(gateway.url)
  for (const cookie of ['team=bad', 'team=good; team=bad', 'team=bad; team=good'])
    expect((await post(call('tools/call', { name: 'echo' }), { cookie })).json.error).toBeDefined()
  expect((await post(call('tools/call', { name: 'echo' }), { cookie: 'team=good' })).json.error).toBeUndefined()
})

test('a change of rules applies to open sessions (row 36)', async () => {
  const { gateway, client } = await start({}, 1)
  await client.callTool({ name: 'echo' })
  gateway.configure({ policies: rules('Deny', 'mcp.tool.name == "echo"') })
  await expect(client.callTool({ name: 'echo' })).rejects.toMatchObject({ code: -32602 })
  gateway.configure({ policies: {} })
  await client.callTool({ name: 'echo' })
})
