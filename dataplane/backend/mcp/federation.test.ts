import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { ResourceUpdatedNotificationSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import type { MCPBackend } from '#gen/config/types.ts'
import { staticTarget } from './testing/gateway.ts'
import { defineBasics } from './testing/tools.ts'
import { begin, call, initialize, MCP_HEADERS, send, until, TestBed } from './testing/test-bed.ts'
import { letArrive } from '../../testing/turns.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

async function two(mcp: Partial<MCPBackend> = {}, definitions: [Parameters<TestBed['upstream']>[0], Parameters<TestBed['upstream']>[0]] = ['one', 'two']) {
  const [one, other] = [await bed.upstream(definitions[0]), await bed.upstream(definitions[1])]
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', other.port)], ...mcp } })
  return { one, other, gateway }
}
const names = (items: readonly { name: string }[]): string[] => items.map(({ name }) => name)

describe('one target', () => {
  test('returns its initialize result unchanged (row 8)', async () => {
    const one = await bed.upstream('one')
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
    const [direct, through] = [
      await send(new URL(`http://127.0.0.1:${one.port}/mcp`), 'POST', MCP_HEADERS, initialize()),
      await send(gateway.url, 'POST', MCP_HEADERS, initialize()),
    ]
    expect(through.json).toEqual(direct.json)
    expect(one.received.map(({ path }) => path)).toEqual(['/mcp', '/mcp'])
  })

  test('receives cursors unchanged, so that clients read the pages (row 15)', async () => {
    const one = await bed.upstream(defineBasics('one', { tools: ['t1', 't2', 't3'], pageSize: 2 }))
    const client = await bed.client(await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } }))
    const first = await client.listTools()
    expect([names(first.tools), first.nextCursor]).toEqual([['t1', 't2'], '2'])
    expect(names((await client.listTools({ cursor: '2' })).tools)).toEqual(['t3'])
  })

  test('has prefixed names and URIs with Always, which are removed from calls (row 10)', async () => {
    const one = await bed.upstream('one')
    const client = await bed.client(await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)], prefixMode: 'Always' } }))
    expect(names((await client.listTools()).tools)).toEqual(['a_echo', 'a_with_under_score', 'a_link'])
    expect((await client.callTool({ name: 'a_with_under_score' })).content).toEqual([{ type: 'text', text: 'one with_under_score' }])
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(['a+file:///x', 'a+memo:x', 'relative'])
    await expect(client.callTool({ name: 'echo' })).rejects.toMatchObject({ code: -32602 })
  })

  test.each(['Conditional', 'Always'] as const)('may begin its messages with a byte order mark, with %s', async (prefixMode) => {
    const { port } = await bed.scripted((_, response, body) => {
      if (body?.id === undefined) return void response.writeHead(202).end()
      const result =
        body.method === 'initialize'
          ? { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
          : { tools: [{ name: 't', inputSchema: { type: 'object' } }] }
      const text = JSON.stringify({ jsonrpc: '2.0', id: body.id, result })
      response.writeHead(200, { 'content-type': 'application/json' }).end(`\ufeff${text}`)
    })
    const client = await bed.client(await bed.gateway({ mcp: { targets: [staticTarget('a', port)], prefixMode } }))
    expect(names((await client.listTools()).tools)).toEqual([prefixMode === 'Always' ? 'a_t' : 't'])
  })

  test('keeps unknown members and numbers that a double cannot hold (row 49)', async () => {
    const seen: unknown[] = []
    const text =
      '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","inputSchema":{"maximum":18446744073709551615},"x-own":1.0}],"x-more":{"a":[1e2]}},"x-top":true}'
    const port = (
      await bed.scripted((_, response, body) => {
        seen.push(body)
        const answer =
          body?.method === 'initialize'
            ? '{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
            : text
        response
          .writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json', 'mcp-session-id': 's1' })
          .end(body?.id === undefined ? '' : answer)
      })
    ).port
    const plain = await begin((await bed.gateway({ mcp: { targets: [staticTarget('a', port)] } })).url)
    expect((await plain.post({ ...call('tools/list'), 'x-sent': [1] })).text).toBe(text)
    expect(seen.at(-1)).toMatchObject({ 'x-sent': [1] })
    const prefixed = await begin((await bed.gateway({ mcp: { targets: [staticTarget('a', port)], prefixMode: 'Always' } })).url)
    expect((await prefixed.post(call('tools/list'))).text).toBe(text.replace('"name":"t"', '"name":"a_t"'))
  })
})

describe('two targets', () => {
  test('a call reaches only the target of the tool, without prefix (row 9)', async () => {
    const { one, other, gateway } = await two()
    const client = await bed.client(gateway)
    expect((await client.callTool({ name: 'b_with_under_score' })).content).toEqual([{ type: 'text', text: 'two with_under_score' }])
    expect(one.log()).not.toContain('tools/call')
    const [received] = other.received.filter(({ body }) => body?.method === 'tools/call')
    expect([received?.body?.params?.['name'], received?.headers['mcp-name'], received?.headers['mcp-method']]).toEqual([
      'with_under_score',
      'with_under_score',
      'tools/call',
    ])
  })

  test('a missing item is a JSON-RPC error that SDK clients report (D3)', async () => {
    const client = await bed.client((await two()).gateway)
    for (const name of ['c_echo', 'echo', '_echo', ''])
      await expect(client.callTool({ name })).rejects.toMatchObject({ code: -32602, message: expect.stringContaining(`Unknown tool: ${name}`) })
    await expect(client.getPrompt({ name: 'greet' })).rejects.toMatchObject({ code: -32602, message: expect.stringContaining('Unknown prompt: greet') })
    await expect(client.readResource({ uri: 'c+file:///x' })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('Unknown resource: c+file:///x'),
    })
    await expect(client.readResource({ uri: 'relative' })).rejects.toMatchObject({ code: -32602 })
    const { post } = await begin((await two()).gateway.url)
    expect((await post(call('made/up'))).json.error).toMatchObject({ code: -32601 })
  })

  test('initialize results are merged: the lowest version, all instructions, all capabilities (row 11)', async () => {
    const server = (protocolVersion: string, more: object) =>
      bed.answering(() => ({ protocolVersion, serverInfo: { name: 's', version: '1' }, capabilities: {}, ...more }))
    const old = await server('2025-03-26', { capabilities: { extensions: { x: { a: 1 }, y: {} } } })
    const young = await server('2025-11-25', { instructions: 'Be nice.', capabilities: { logging: {}, extensions: { x: { a: 2 }, z: { b: 1 } } } })
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', old.port), staticTarget('b', young.port)] } })
    const { json } = await send(gateway.url, 'POST', MCP_HEADERS, initialize('2025-11-25'))
    expect(json.result).toEqual({
      protocolVersion: '2025-03-26',
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        logging: {},
        extensions: { x: {}, y: {}, z: { b: 1 } },
      },
      serverInfo: { name: 'proxy', version: '1.2.3' },
      instructions: expect.stringMatching(/^This server joins[^\n]+\n\n\[b\]\nBe nice\.$/),
    })
  })

  test('an unsupported revision of a target is not selected as the lowest', async () => {
    const { gateway } = await two()
    expect((await send(gateway.url, 'POST', MCP_HEADERS, initialize('1999-01-01'))).json.result?.['protocolVersion']).toBe('2025-11-25')
  })

  test.each(['one', 'both'])('messages before the initialize response are delivered: %s', async (which) => {
    const { port } = await bed.scripted((_, response, body) => {
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}\n\n')
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: body?.id, result })}\n\n`)
    })
    const targets = which === 'one' ? [staticTarget('a', port)] : [staticTarget('a', port), staticTarget('b', port)]
    const { text } = await send((await bed.gateway({ mcp: { targets } })).url, 'POST', MCP_HEADERS, initialize())
    const events = text.split('\n\n').filter((event) => event !== '')
    expect(events.map((event) => (event.includes('"data":"hello"') ? 'notice' : 'answer'))).toEqual(
      which === 'one' ? ['notice', 'answer'] : ['notice', 'notice', 'answer'],
    )
  })

  test.each([
    ['tools/call', { name: 'b_x' }, 5],
    ['prompts/get', { name: 'b_x' }, { messages: 'none' }],
    ['resources/read', { uri: 'b+file:///x' }, {}],
  ])('a result with the wrong type for %s is an error (mcp.md §4.2)', async (method, params, result) => {
    const odd = await bed.scripted((_, response, body) => {
      const known = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
      response.writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json' })
      response.end(body?.id === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', id: body.id, result: body.method === 'initialize' ? known : result }))
    })
    const one = await bed.upstream('one')
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', odd.port)] } })
    const { json } = await (await begin(gateway.url)).post(call(method, params))
    expect(json.error).toEqual({ code: -32603, message: `upstream returned a result incompatible with ${method}` })
  })

  test('client capabilities reach both targets, whose requests are routed back (D4)', async () => {
    const { one, other, gateway } = await two()
    await bed.client(gateway, { capabilities: { roots: { listChanged: true }, sampling: {} } })
    for (const { received } of [one, other]) expect(received[0]?.body?.params?.['capabilities']).toEqual({ roots: { listChanged: true }, sampling: {} })
  })

  test('URIs have prefixes in lists, templates, results and links of results (row 12)', async () => {
    const client = await bed.client((await two()).gateway)
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual([
      'a+file:///x',
      'a+memo:x',
      'relative',
      'b+file:///x',
      'b+memo:x',
      'relative',
    ])
    expect((await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual(['a+num://{n}', 'b+num://{n}'])
    expect(await client.readResource({ uri: 'b+memo:x' })).toEqual({ contents: [{ uri: 'b+memo:x', text: 'two memo:x' }] })
    expect((await client.callTool({ name: 'b_link' })).content).toEqual([
      { type: 'resource_link', uri: 'b+file:///x', name: 'x' },
      { type: 'resource', resource: { uri: 'b+memo:x', text: 'embedded' } },
    ])
  })

  test('prompts and completions reach their target without prefix (row 13)', async () => {
    const client = await bed.client((await two()).gateway)
    expect(names((await client.listPrompts()).prompts)).toEqual(['a_greet', 'b_greet'])
    expect((await client.getPrompt({ name: 'b_greet', arguments: { who: 'Ann' } })).messages[0]?.content).toEqual({ type: 'text', text: 'two greets Ann' })
    const complete = async (ref: Parameters<typeof client.complete>[0]['ref']) =>
      (await client.complete({ ref, argument: { name: 'n', value: '' } })).completion.values
    expect(await complete({ type: 'ref/prompt', name: 'b_greet' })).toEqual(['two greet'])
    expect(await complete({ type: 'ref/resource', uri: 'a+num://{n}' })).toEqual(['one num://{n}'])
  })

  test('all pages are merged in the order of the targets (row 15)', async () => {
    const tools = Array.from({ length: 7 }, (_, index) => `t${index}`)
    const { one, gateway } = await two({}, [defineBasics('one', { tools, pageSize: 2 }), defineBasics('two', { tools: ['only'] })])
    const client = await bed.client(gateway)
    const lists = [await client.listTools(), await client.listTools()]
    for (const { tools: listed, nextCursor } of lists) expect([names(listed), nextCursor]).toEqual([[...tools.map((name) => `a_${name}`), 'b_only'], undefined])
    expect(one.log().filter((method) => method === 'tools/list')).toHaveLength(8)
    await expect(client.listTools({ cursor: '2' })).rejects.toMatchObject({ code: -32602 })
  })

  test('a list with endless pages ends with an error', async () => {
    const endless = await bed.answering(({ method }) => (method === 'initialize' ? undefined : { tools: [], nextCursor: 'more' }))
    const one = await bed.upstream('one')
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', endless.port)] } })
    const { post } = await begin(gateway.url)
    expect((await post(call('tools/list'))).json.error).toMatchObject({ code: -32603, message: expect.stringContaining('64 pages') })
  })

  test('a target without prompts adds none to the list of the other', async () => {
    const { one, gateway } = await two({}, [(server) => server.registerCapabilities({}), 'two'])
    const client = await bed.client(gateway)
    expect(names((await client.listPrompts()).prompts)).toEqual(['b_greet'])
    expect(one.log()).toContain('prompts/list')
  })

  test('ping and levels reach every target (row 16)', async () => {
    const { one, other, gateway } = await two()
    const client = await bed.client(gateway)
    await client.ping()
    await client.setLoggingLevel('error')
    for (const { log } of [one, other]) expect(log()).toEqual(expect.arrayContaining(['ping', 'logging/setLevel']))
  })

  test.each([1, 2])('a level that does not exist is an error although the server accepts it (%d targets)', async (count) => {
    const { port } = await bed.answering(({ method }) => (method === 'logging/setLevel' ? {} : undefined))
    const { url } = await bed.gateway({ mcp: { targets: ['a', 'b'].slice(0, count).map((name) => staticTarget(name, port)) } })
    const { post } = await begin(url)
    const message = 'params.level must be one of debug, info, notice, warning, error, critical, alert, emergency'
    expect((await post(call('logging/setLevel', { level: 'warn' }))).json.error).toEqual({ code: -32602, message })
    expect((await post(call('logging/setLevel', { level: 'warning' }))).json.result).toEqual({})
  })

  test('notifications of changes arrive on the stream with prefixed URIs (row 14)', async () => {
    const { other, gateway } = await two()
    const seen: string[] = []
    const client = await bed.client(gateway, {
      prepare: (made) => {
        made.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void seen.push(params.uri))
        made.setNotificationHandler(ToolListChangedNotificationSchema, () => void seen.push('tools'))
      },
    })
    await client.subscribeResource({ uri: 'b+memo:x' })
    await until('the stream of the server', () => other.log().includes('GET'))
    await letArrive()
    for (const server of other.servers.values()) {
      await server.sendResourceUpdated({ uri: 'memo:x' })
      await server.sendToolListChanged()
    }
    await until('two notices', () => seen.length === 2)
    expect(seen).toEqual(['b+memo:x', 'tools'])
    expect(other.received.find(({ body }) => body?.method === 'resources/subscribe')?.body?.params).toEqual({ uri: 'memo:x' })
  })

  describe('Never', () => {
    const definitions: Parameters<typeof two>[1] = [
      defineBasics('one', { tools: ['shared', 'first', 'own'], pageSize: 2 }),
      defineBasics('two', { tools: ['shared', 'later'], pageSize: 1 }),
    ]

    test('hides names that two targets offer and routes calls of the others, later pages included (row 10)', async () => {
      const { one, gateway } = await two({ prefixMode: 'Never' }, definitions)
      const client = await bed.client(gateway)
      expect(names((await client.listTools()).tools)).toEqual(['first', 'own', 'later'])
      for (let time = 0; time < 2; time++) expect((await client.callTool({ name: 'later' })).content).toEqual([{ type: 'text', text: 'two later' }])
      // Once for the list, once to find the owner: two pages each.
      expect(one.log().filter((method) => method === 'tools/list')).toHaveLength(4)
      await expect(client.callTool({ name: 'shared' })).rejects.toThrow('served by multiple targets')
      await expect(client.callTool({ name: 'nothing' })).rejects.toThrow('Unknown tool: nothing')
      expect((await client.listResources()).resources[0]?.uri).toBe('a+file:///x')
    })

    test('keeps a name that one target lists twice, because calls of it reach that target', async () => {
      const { gateway } = await two({ prefixMode: 'Never' }, [defineBasics('one', { tools: ['twice', 'twice', 'own'], pageSize: 1 }), definitions[1]])
      const client = await bed.client(gateway)
      expect(names((await client.listTools()).tools)).toEqual(['twice', 'twice', 'own', 'shared', 'later'])
      expect((await client.callTool({ name: 'twice' })).content).toEqual([{ type: 'text', text: 'one twice' }])
    })

    test('logs a name that two targets offer once, with the targets', async () => {
      const [one, other] = [await bed.upstream(definitions[0]), await bed.upstream(definitions[1])]
      const logged: unknown[] = []
      const targets = [staticTarget('a', one.port), staticTarget('b', other.port)]
      const gateway = await bed.gateway({ mcp: { targets, prefixMode: 'Never' }, onLog: (message, fields) => void logged.push({ message, ...fields }) })
      const client = await bed.client(gateway)
      for (let time = 0; time < 2; time++) await client.listTools()
      expect(logged).toEqual([
        { message: 'several MCP targets have one name', code: 'PX4038', backend: 'ns/mcp', kind: 'tool', name: 'shared', targets: 'a,b' },
      ])
    })

    test('ignores denied items when it looks for duplicate names, in lists and calls', async () => {
      const [one, other] = [await bed.upstream(definitions[0]), await bed.upstream(definitions[1])]
      const deny = (expression: string) => ({ mcp: { authorization: { action: 'Deny' as const, policy: { matchExpressions: [expression] } } } })
      const targets = [staticTarget('a', one.port), staticTarget('b', other.port)]
      const gateway = await bed.gateway({ mcp: { targets, prefixMode: 'Never' }, policies: deny('mcp.tool.name == "shared" && mcp.tool.target == "a"') })
      const client = await bed.client(gateway)
      expect(names((await client.listTools()).tools)).toEqual(['first', 'own', 'shared', 'later'])
      expect((await client.callTool({ name: 'shared' })).content).toEqual([{ type: 'text', text: 'two shared' }])
      gateway.configure({ policies: deny('mcp.tool.name == "shared"') })
      await expect(client.callTool({ name: 'shared' })).rejects.toThrow('Unknown tool: shared')
    })

    test('looks the target up again ten seconds after another one did not respond', async () => {
      const [one, other] = [await bed.upstream(definitions[0]), await bed.upstream(definitions[1])]
      const door = await bed.forwarder(other.port)
      const targets = [staticTarget('a', one.port), staticTarget('b', door.port)]
      let nowMs = 0
      const gateway = await bed.gateway({ mcp: { targets, prefixMode: 'Never', failureMode: 'FailOpen' }, monotonicMs: () => nowMs })
      const { post } = await begin(gateway.url)
      const callShared = async () => (await post(call('tools/call', { name: 'shared' }))).json
      const lists = () => one.log().filter((method) => method === 'tools/list').length
      await other.close()
      door.to = undefined
      for (let time = 0; time < 2; time++) expect((await callShared()).result?.['content']).toEqual([{ type: 'text', text: 'one shared' }])
      expect(lists()).toBe(2)
      nowMs += 10_000
      await callShared()
      expect(lists()).toBe(4)
    })

    test('looks the target up again after a list changed', async () => {
      const { other, gateway } = await two({ prefixMode: 'Never' }, definitions)
      const client = await bed.client(gateway)
      await client.callTool({ name: 'later' })
      await until('the stream of the server', () => other.log().includes('GET'))
      await letArrive()
      let isChanged = false
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => void (isChanged = true))
      for (const server of other.servers.values()) await server.sendToolListChanged()
      await until('the notice', () => isChanged)
      const before = other.log().filter((method) => method === 'tools/list').length
      await client.callTool({ name: 'later' })
      expect(other.log().filter((method) => method === 'tools/list').length).toBeGreaterThan(before)
    })
  })
})
