import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { staticTarget, type GatewayConfig } from './testing/gateway.ts'
import { begin, call, sendModern, TestBed } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const UI = 'ui://charts/view.html'
const inputSchema = { type: 'object' }
const tools = [
  { name: 'plain', inputSchema, _meta: { own: 1 } },
  { name: 'nested', inputSchema, _meta: { ui: { resourceUri: UI, visibility: ['model'] } } },
  { name: 'flat', inputSchema, _meta: { 'ui/resourceUri': UI } },
]
const resources = [{ uri: UI, name: 'view', mimeType: 'text/html;profile=mcp-app' }]
const extensions = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } }

const listed: Record<string, object> = {
  'tools/list': { tools },
  'resources/list': { resources },
  'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'ui://{name}/x', name: 'template' }] },
}

/** A server of either era with tools that have UIs. */
async function appServer(isModern: boolean): Promise<number> {
  if (isModern) {
    const { port } = await bed.modern('app', { handle: ({ method }) => listed[method ?? ''] })
    return port
  }
  const { port } = await bed.answering((body) => {
    if (body.method === 'initialize')
      return { protocolVersion: '2025-11-25', capabilities: { tools: {}, resources: {}, extensions }, serverInfo: { name: 's', version: '1' } }
    const uri = String(body.params?.['uri'])
    return listed[body.method ?? ''] ?? { contents: [{ uri, text: `read ${uri}` }], content: [{ type: 'resource_link', uri: UI, name: 'view' }] }
  })
  return port
}

async function withApps(isModern: boolean, { isFederated = true, ...more }: GatewayConfig & { isFederated?: boolean } = {}) {
  const port = await appServer(isModern)
  const other = await bed.upstream('other')
  const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', port), ...(isFederated ? [staticTarget('b', other.port)] : [])] }, ...more })
  return url
}

const metaOf = (result: Record<string, unknown> = {}): unknown[] => (result['tools'] as { _meta?: unknown }[]).slice(0, 3).map(({ _meta: meta }) => meta)

describe.each([true, false])('UI resources of MCP Apps (mcp.md §4), server without sessions: %p', (isModern) => {
  test('keep their scheme in a federation, in lists and in tools', async () => {
    const url = await withApps(isModern)
    const shown = 'ui://a+charts/view.html'
    const [tool, resource, template] = await Promise.all(Object.keys(listed).map((method) => sendModern(url, method)))
    expect(metaOf(tool?.json.result)).toEqual([{ own: 1 }, { ui: { resourceUri: shown, visibility: ['model'] } }, { 'ui/resourceUri': shown }])
    expect([resource?.json.result?.['resources'], template?.json.result?.['resourceTemplates']]).toMatchObject([
      [{ uri: shown }, { uri: 'b+file:///x' }, { uri: 'b+memo:x' }, { uri: 'relative' }],
      [{ uriTemplate: 'ui://a+{name}/x' }, { uriTemplate: 'b+num://{n}' }],
    ])
  })

  test('are read by the URI in the tool', async () => {
    const url = await withApps(isModern)
    const { json } = await sendModern(url, 'resources/read', { uri: 'ui://a+charts/view.html' })
    expect(json.result?.['contents']).toEqual([{ uri: 'ui://a+charts/view.html', text: expect.stringContaining(UI) }])
  })

  test.each(['a+ui://charts/view.html', UI, 'ui://z+charts/view.html', 'ui://+charts', 'ui://charts/a+b', 'ui://', 'ui://a/+charts'])(
    'are not found at %s',
    async (uri) => {
      const url = await withApps(isModern)
      const { json } = await sendModern(url, 'resources/read', { uri })
      expect(json.error).toEqual({ code: -32602, message: `Unknown resource: ${uri}` })
    },
  )

  test('are unchanged with one server, and hidden in tools if rules deny them', async () => {
    const plain = await sendModern(await withApps(isModern, { isFederated: false }), 'tools/list')
    expect(metaOf(plain.json.result)).toEqual(tools.map(({ _meta: meta }) => meta))
    const policies: GatewayConfig['policies'] = { mcp: { authorization: { action: 'Deny', policy: { matchExpressions: [`mcp.resource.name == "${UI}"`] } } } }
    const { json } = await sendModern(await withApps(isModern, { isFederated: false, policies }), 'tools/list')
    expect(metaOf(json.result)).toEqual([{ own: 1 }, { ui: { visibility: ['model'] } }, {}])
  })

  test('have their URI in the lists of clients with sessions too', async () => {
    const { post } = await begin(await withApps(isModern))
    expect(metaOf((await post(call('tools/list'))).json.result)[2]).toEqual({ 'ui/resourceUri': 'ui://a+charts/view.html' })
  })
})

test('the extension is announced if a server of a federation has it', async () => {
  const { json } = await sendModern(await withApps(false), 'server/discover')
  expect(json.result?.['capabilities']).toMatchObject({ extensions })
})

test('a UI resource in the result of a tool has the URI of the federation', async () => {
  const { json } = await sendModern(await withApps(false), 'tools/call', { name: 'a_nested' })
  expect(json.result?.['content']).toEqual([{ type: 'resource_link', uri: 'ui://a+charts/view.html', name: 'view' }])
})
