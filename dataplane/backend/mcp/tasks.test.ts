import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { staticTarget, type GatewayConfig } from './testing/gateway.ts'
import { notify, type ModernServer, type ModernServerOptions } from './testing/modern-server.ts'
import { modernCall, modernHeaders } from './testing/modern.ts'
import { begin, call, sendModern, TestBed, until } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const EXTENSION = 'io.modelcontextprotocol/tasks'
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const meta = { [CAPABILITIES]: { extensions: { [EXTENSION]: {} } } }
const link = { type: 'resource_link', uri: 'memo:x', name: 'x' }
const task = { taskId: 'id+1', status: 'working', createdAt: '2026-11-01T00:00:00Z', lastUpdatedAt: '2026-11-01T00:00:00Z', ttlMs: null }
const done = { ...task, status: 'completed', result: { content: [link] } }

/** Calls of tools become tasks if the client has them, which are completed at once. */
const withTasks: NonNullable<ModernServerOptions['handle']> = ({ method, params }) => {
  const declared = (params?.['_meta'] as Record<string, { extensions?: object }> | undefined)?.[CAPABILITIES]?.extensions
  if (method === 'server/discover') return { supportedVersions: ['2026-07-28'], capabilities: { tools: {}, extensions: { [EXTENSION]: {} } } }
  if (method === 'tools/call' && declared !== undefined && EXTENSION in declared) return { ...task, resultType: 'task' }
  if (method === 'tasks/get') return params?.['taskId'] === task.taskId ? done : { code: -32602 }
  return method?.startsWith('tasks/') === true ? {} : undefined
}

async function withTwo(more: GatewayConfig = {}): Promise<{ one: ModernServer; url: URL }> {
  const one = await bed.modern('one', { handle: withTasks })
  const old = await bed.upstream('old')
  const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('old', old.port)] }, ...more })
  return { one, url }
}

const tasksOf = ({ received }: ModernServer) =>
  received.filter(({ body }) => body?.method?.startsWith('tasks/')).map(({ body, headers }) => [body?.method, body?.params?.['taskId'], headers['mcp-name']])

describe('tasks of servers without sessions (mcp.md §13.3)', () => {
  test('have ids that name their server in a federation', async () => {
    const { one, url } = await withTwo()
    const created = await sendModern(url, 'tools/call', { name: 'a_echo' }, { meta })
    expect(created.json.result).toMatchObject({ ...task, taskId: 'a+id+1', resultType: 'task' })
    const headers = { 'mcp-name': 'a+id+1' }
    const got = await sendModern(url, 'tasks/get', { taskId: 'a+id+1' }, { meta, headers })
    expect(got.json.result).toMatchObject({ ...done, taskId: 'a+id+1', resultType: 'complete', result: { content: [{ ...link, uri: 'a+memo:x' }] } })
    for (const method of ['tasks/update', 'tasks/cancel'])
      expect((await sendModern(url, method, { taskId: 'a+id+1', inputResponses: {} }, { meta })).json.result).toMatchObject({ resultType: 'complete' })
    expect(tasksOf(one)).toEqual(['tasks/get', 'tasks/update', 'tasks/cancel'].map((method) => [method, 'id+1', 'id+1']))
  })

  test.each<[string, string, Record<string, unknown>, Record<string, string>, unknown[]]>([
    ['of an unknown server', 'tasks/get', { taskId: 'z+1' }, {}, [200, -32602, 'Unknown task: z+1']],
    ['without a server', 'tasks/get', { taskId: '1' }, {}, [200, -32602, 'Unknown task: 1']],
    ['that the server does not know', 'tasks/get', { taskId: 'a+2' }, {}, [200, -32602, 'own error']],
    ['that is no string', 'tasks/get', { taskId: 5 }, {}, [200, -32602, 'params.taskId of tasks/get must be a string']],
    ['in two spellings', 'tasks/get', { taskId: 'a+1', TaskId: 'a+2' }, {}, [200, -32602, 'params has TaskId beside taskId: remove it']],
    ['that differs from Mcp-Name', 'tasks/get', { taskId: 'a+id+1' }, { 'mcp-name': 'a+2' }, [400, -32020, expect.stringContaining('Mcp-Name')]],
    ['of a server with sessions', 'tasks/get', { taskId: 'old+1' }, {}, [404, -32601, 'Method not found: tasks/get']],
    ['of a method of older revisions', 'tasks/result', { taskId: 'a+id+1' }, {}, [404, -32601, 'Method not found: tasks/result']],
  ])('%s are rejected', async (_, method, params, headers, expected) => {
    const { status, json } = await sendModern((await withTwo()).url, method, params, { meta, headers })
    expect([status, json.error?.code, json.error?.message]).toEqual(expected)
  })

  test('are subject to rules, and have no ids in logs and metrics', async () => {
    const expressions = ['mcp.tool.name == "echo"', 'mcp.task.target == "a" && mcp.task.name == "id+1"']
    const one = await bed.modern('one', { handle: withTasks })
    const policies = { mcp: { authorization: { policy: { matchExpressions: expressions } } } }
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] }, policies })
    const statusOf = async (taskId: string) => (await sendModern(gateway.url, 'tasks/get', { taskId }, { meta })).json
    expect([(await statusOf('id+1')).result?.['status'], (await statusOf('other')).error?.message]).toEqual(['completed', 'Unknown task: other'])
    await until('the end of the requests', () => gateway.server.finished.length >= 2)
    expect(logFieldsOf(gateway.server.finished[0])).toMatchObject({ 'mcp.method.name': 'tasks/get', 'mcp.target': 'a', 'mcp.resource.type': 'task' })
    const metrics = [...gateway.registry.expose('text')].join('')
    expect(metrics).toMatch(/proxy_mcp_requests_total\{method="tasks\/get",resource_type="task",server="a",resource="unknown"/)
  })

  test('are reported by subscriptions/listen', async () => {
    const { one, url } = await withTwo()
    const params = { notifications: { taskIds: ['a+id+1', 'old+1', 'z+1'] } }
    const controller = new AbortController()
    const init = { method: 'POST', headers: modernHeaders('subscriptions/listen'), body: JSON.stringify(modernCall('subscriptions/listen', params, { meta })) }
    const { body } = await fetch(url, { ...init, signal: controller.signal })
    let text = ''
    const reading = (async () => {
      for await (const chunk of body ?? []) text += new TextDecoder().decode(chunk)
    })().catch(() => undefined)
    await until('the stream of the server', () => one.streams.size === 1 && text.includes('acknowledged'))
    notify(one, 'notifications/tasks', { ...done, taskId: 'other' })
    notify(one, 'notifications/tasks', done)
    await until('the notification', () => text.includes('notifications/tasks'))
    controller.abort()
    await reading
    const messages = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? '') as { params: Record<string, unknown> })
    expect(messages.map((message) => message.params)).toMatchObject([{ notifications: { taskIds: ['a+id+1'] } }, { taskId: 'a+id+1', status: 'completed' }])
    expect(one.received.find((received) => received.body?.method === 'subscriptions/listen')?.body?.params?.['notifications']).toMatchObject({
      taskIds: ['id+1'],
    })
  })

  test.each<[string, unknown, object, unknown[]]>([
    ['of a client without the extension', ['a+1'], {}, [400, -32021]],
    ['that is no list', 'a+1', meta, [200, -32602]],
    ['with an id that is no string', [1], meta, [200, -32602]],
    ['of more than 1,000 ids', Array.from({ length: 1001 }, String), meta, [200, -32602]],
  ])('a subscription %s is rejected', async (_, taskIds, sent, expected) => {
    const { url } = await withTwo()
    const { status, json } = await sendModern(url, 'subscriptions/listen', { notifications: { taskIds } }, { meta: sent as Record<string, unknown> })
    expect([status, json.error?.code]).toEqual(expected)
  })

  test('are announced for a federation', async () => {
    const { json } = await sendModern((await withTwo()).url, 'server/discover', {}, { meta })
    expect(json.result?.['capabilities']).toMatchObject({ extensions: { [EXTENSION]: {} } })
  })

  test('do not exist for clients with sessions', async () => {
    const one = await bed.modern('one', { handle: withTasks })
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
    const { post } = await begin(url)
    const called = await post(call('tools/call', { name: 'echo', arguments: { text: 'x' } }))
    expect(called.json.result?.['content']).toEqual([{ type: 'text', text: 'one: x' }])
    expect((await post(call('tasks/get', { taskId: 'id+1' }))).json.error?.code).toBe(-32601)
  })

  test('do not exist where guards check results of tools', async () => {
    const { one, url } = await withTwo({ policies: { mcp: { toolGuards: { output: [{ regex: { builtins: ['Email'] } }] } } } })
    const called = await sendModern(url, 'tools/call', { name: 'a_echo', arguments: { text: 'x' } }, { meta })
    expect(called.json.result).toMatchObject({ resultType: 'complete', content: [{ type: 'text', text: 'one: x' }] })
    expect((await sendModern(url, 'tasks/get', { taskId: 'a+id+1' }, { meta })).json.error?.code).toBe(-32601)
    expect((await sendModern(url, 'server/discover', {}, { meta })).json.result?.['capabilities']).not.toHaveProperty(['extensions', EXTENSION])
    expect(tasksOf(one)).toEqual([])
  })
})
