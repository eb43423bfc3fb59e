import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { McpView, MCPBackend } from '#gen/config/types.ts'
import { staticTarget } from './testing/gateway.ts'
import { MODERN, modernCall, modernHeaders } from './testing/modern.ts'
import { call, initialize, MCP_HEADERS, send, TestBed, type RawAnswer } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const namesIn = ({ json }: RawAnswer, member: string): string[] => ((json.result?.[member] ?? []) as { name: string }[]).map(({ name }) => name)
const inputSchema = { type: 'object' }

async function start(views: McpView[], more: Partial<MCPBackend> = {}) {
  const servers = await Promise.all(
    [
      ['read', 'write'],
      ['search', 'delete'],
    ].map((names) =>
      bed.answering((body) => {
        if (body.method === 'tools/list') return { tools: names.map((name) => ({ name, inputSchema })) }
        if (body.method === 'prompts/list') return { prompts: [{ name: 'ask' }] }
        return body.method === 'tools/call' ? { content: [{ type: 'text', text: `called ${String(body.params?.['name'])}` }] } : undefined
      }),
    ),
  )
  const targets = ['files', 'tickets'].map((name, index) => staticTarget(name, servers[index]?.port ?? 0))
  const { url } = await bed.gateway({ mcp: { targets, views, sessionRouting: 'Stateless', ...more } })
  /** Posts to a path; `host` is the Host header. */
  const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<RawAnswer> =>
    send(new URL(path, url), 'POST', { ...MCP_HEADERS, ...headers }, body)
  const list = async (path: string, headers?: Record<string, string>): Promise<unknown> => {
    const { json, status, text } = await post(path, call('tools/list'), headers)
    return json.result === undefined ? [status, text] : (json.result['tools'] as { name: string }[]).map(({ name }) => name)
  }
  const callTool = async (path: string, name: string): Promise<unknown> => {
    const { json } = await post(path, call('tools/call', { name, arguments: {} }))
    return json.error?.message ?? (json.result?.['content'] as { text: string }[] | undefined)?.[0]?.text
  }
  return { url, post, list, callTool }
}

describe('views of an MCP backend', () => {
  test('have their tools by path, and calls of others are unknown', async () => {
    const { list, callTool } = await start([
      { name: 'readers', path: '/readers', tools: { exclude: ['*_write', '*_delete'] } },
      { name: 'support', path: '/support/', targets: ['tick*'], tools: { include: ['search'] } },
      { name: 'all', path: '/' },
    ])
    expect(await list('/readers/mcp')).toEqual(['files_read', 'tickets_search'])
    expect(await list('/readers')).toEqual(['files_read', 'tickets_search'])
    expect(await list('/support')).toEqual(['search'])
    expect(await list('/supporters')).toEqual(['files_read', 'files_write', 'tickets_search', 'tickets_delete'])
    expect([await callTool('/readers', 'files_read'), await callTool('/readers', 'files_write')]).toEqual(['called read', 'Unknown tool: files_write'])
    expect([await callTool('/support', 'search'), await callTool('/support', 'delete')]).toEqual(['called search', 'Unknown tool: delete'])
    expect(await callTool('/support', 'files_read')).toBe('Unknown tool: files_read')
  })

  test('have their tools by host, exact ones before wildcards', async () => {
    const { list } = await start([
      { name: 'a', hostname: '*.example.com', targets: ['files'] },
      { name: 'b', hostname: 'support.example.com', targets: ['tickets'] },
      { name: 'c', hostname: 'support.example.com', path: '/x', targets: ['files'] },
    ])
    expect(await list('/mcp', { host: 'Red.Example.com:8080' })).toEqual(['read', 'write'])
    expect(await list('/mcp', { host: 'support.example.com' })).toEqual(['search', 'delete'])
    expect(await list('/x', { host: 'support.example.com' })).toEqual(['read', 'write'])
    expect(await list('/mcp', { host: 'example.com' })).toEqual([404, 'no view of the MCP backend has this path and host'])
  })

  test('show prompts of their targets, with names as if these were the only ones', async () => {
    const { post } = await start([
      { name: 'one', path: '/one', targets: ['files'], tools: { include: ['nothing'] } },
      { name: 'two', path: '/two' },
    ])
    const promptsAt = async (path: string): Promise<unknown> => namesIn(await post(path, call('prompts/list')), 'prompts')
    expect([await promptsAt('/one'), await promptsAt('/two')]).toEqual([['ask'], ['files_ask', 'tickets_ask']])
  })

  test('with a session of another view that has other targets are 404', async () => {
    const { post } = await start(
      [
        { name: 'one', path: '/one', targets: ['files'] },
        { name: 'two', path: '/two' },
      ],
      { sessionRouting: 'Stateful' },
    )
    const id = String((await post('/one', initialize())).headers['mcp-session-id'])
    const statusOf = async (path: string): Promise<number> => (await post(path, call('tools/list'), { 'mcp-session-id': id })).status
    expect([await statusOf('/one'), await statusOf('/two'), await statusOf('/three')]).toEqual([200, 404, 404])
  })

  test('apply to portable names, names without prefix, searches and clients of revision 2026-07-28', async () => {
    const views: McpView[] = [{ name: 'readers', path: '/readers', tools: { include: ['*read', '*search'] } }]
    const plain = await start(views, { prefixMode: 'Never' })
    expect(await plain.list('/readers')).toEqual(['read', 'search'])
    expect(await plain.callTool('/readers', 'delete')).toBe('Unknown tool: delete')
    const portable = await start(views, { toolNames: 'Portable' })
    expect(await portable.list('/readers')).toEqual(['files_read', 'tickets_search'])
    const searching = await start(views, { toolSearch: 'Enabled' })
    const query = { name: 'search_tools', arguments: { query: 'delete write read' } }
    expect(JSON.stringify((await searching.post('/readers', call('tools/call', query))).json.result)).toMatch(/files_read[^]*\\"total\\":2/)
    const modern = await portable.post('/readers', modernCall('tools/list'), modernHeaders('tools/list'))
    expect(namesIn(modern, 'tools')).toEqual(['files_read', 'tickets_search'])
    expect(modernHeaders('tools/list')['mcp-protocol-version']).toBe(MODERN)
  })
})
