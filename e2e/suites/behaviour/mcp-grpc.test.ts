import { afterEach, describe, expect, test } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { startGateway, type Gateway } from '../../harness/program/gateway.ts'
import { shopDescriptors, startShop } from '../../harness/upstream/shop.ts'
import { waitUntil } from '../../harness/wait.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const route = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'HTTPRoute',
  metadata: { name: 'mcp' },
  spec: { parentRefs: [{ name: 'gw' }], rules: [{ backendRefs: [{ group: 'proxy.dev', kind: 'ProxyBackend', name: 'mcp' }] }] },
}
const backend = (grpc: object) => ({
  apiVersion: 'proxy.dev/v1alpha1',
  kind: 'ProxyBackend',
  metadata: { name: 'mcp' },
  spec: { mcp: { targets: [{ name: 'shop', grpc: { backendRef: { name: 'shop', port: 80 }, ...grpc } }] } },
})
const descriptors = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'shop' }, binaryData: { 'shop.pb': shopDescriptors().toString('base64') } }
const configMapRef = { name: 'shop', key: 'shop.pb' }

async function start(
  hasReflection: boolean,
  manifests: readonly object[],
): Promise<{ gateway: Gateway; client: Client; shop: Awaited<ReturnType<typeof startShop>> }> {
  const shop = await startShop({ name: 'shop', hasReflection })
  closing.push(() => shop.close())
  const gateway = await startGateway({ services: { shop: shop.port }, manifests: () => [route, ...manifests] })
  closing.push(() => gateway.stop())
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.origin}/mcp`), { requestInit: { headers: { 'x-user': 'ann' } } }))
  closing.push(() => client.close())
  return { gateway, client, shop }
}

const namesOf = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name).toSorted()
const textOf = (result: Awaited<ReturnType<Client['callTool']>>) => (result.content as { text: string }[])[0]?.text

describe('a gRPC server as an MCP server (mcp.md §2.3)', () => {
  test.each([
    ['reflection', true, [backend({})]],
    ['a descriptor set', false, [backend({ configMapRef }), descriptors]],
  ] as const)('has its unary methods as tools by %s', async (_, hasReflection, manifests) => {
    const { client, shop } = await start(hasReflection, manifests)
    expect(await namesOf(client)).toEqual(['Carts_AddItem', 'Carts_GetCart'])
    const item = { name: 'tea', cents: '9007199254740993', size: 'LARGE', labels: { kind: 'green' }, data: 'AAH/' }
    const { structuredContent, isError } = await client.callTool({ name: 'Carts_AddItem', arguments: { id: '1', item } })
    expect([isError, structuredContent]).toEqual([undefined, { id: '1', items: [item], changed: '2023-11-14T22:13:20Z' }])
    expect(textOf(await client.callTool({ name: 'Carts_GetCart', arguments: { id: '7' } }))).toBe('NOT_FOUND: no cart 7')
    const wrong = await client.callTool({ name: 'Carts_AddItem', arguments: { id: '1', item: { cents: 'many' } } })
    expect([wrong.isError, textOf(wrong)]).toEqual([true, expect.stringMatching(/^Invalid arguments: .*cents/)])
    expect(shop.metadata).toEqual([expect.objectContaining({ 'x-user': 'ann' })])
    await expect(client.callTool({ name: 'Carts_WatchCart' })).rejects.toThrow(/Unknown tool/)
  })

  test('announces its tools when the selection changes, and names a set that is missing', async () => {
    const { client, gateway } = await start(false, [backend({ configMapRef, include: ['*/GetCart'] }), descriptors])
    expect(await namesOf(client)).toEqual(['Carts_GetCart'])
    await gateway.apply([route, backend({ configMapRef }), descriptors])
    await waitUntil('the new selection is in force', async () => (await namesOf(client)).length === 2)
    await gateway.apply([route, backend({ configMapRef })])
    await waitUntil('no tool is left', async () => (await namesOf(client)).length === 0)
  })

  test('without reflection and without a descriptor set is an error that names the cause', async () => {
    const { client, gateway } = await start(false, [backend({})])
    await expect(client.listTools()).rejects.toThrow()
    await gateway.dataplane.program.waitForLine(/the descriptors cannot be read: /)
  })
})
