import { createConnection } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { findFreePorts } from '../../harness/program/ports.ts'
import { startProgram, type Program } from '../../harness/program/program.ts'
import { waitUntil } from '../../harness/wait.ts'
import { startGateway, type E2eGateway } from './gateway.ts'

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

let server: Program | undefined
let gateway: E2eGateway | undefined
const client = new Client({ name: 'e2e', version: '1' })

beforeAll(async () => {
  const [port = 0] = await findFreePorts(1)
  server = startProgram({ name: 'gRPC', command: file('../../../.tools/mcp-grpc/bin/python'), args: [file('./grpc_server.py'), String(port)] })
  const isReady = () =>
    new Promise<boolean>((resolve) => {
      const socket = createConnection(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
  await waitUntil('the gRPC server', isReady, 60_000)
  gateway = await startGateway({ shop: { targets: [{ name: 'shop', port, grpc: {}, policies: { http: { requestTimeout: '7s' } } }] } })
  await client.connect(new StreamableHTTPClientTransport(new URL(gateway.url('shop'))))
})
afterAll(async () => {
  await client.close()
  await gateway?.stop()
  await server?.stop(100)
})

test('the methods of a server on grpc-core are tools, by its reflection service', async () => {
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['Shop_Echo', 'Shop_Fail'])
})

test('a call of a server on grpc-core has its deadline and its result', async () => {
  expect(await client.callTool({ name: 'Shop_Echo', arguments: { text: 'a' } })).toMatchObject({ structuredContent: { text: 'a within 7 s' } })
})

test('a status of a server on grpc-core is an error of the tool', async () => {
  expect(await client.callTool({ name: 'Shop_Fail', arguments: { text: 'cart' } })).toMatchObject({ isError: true, content: [{ text: 'NOT_FOUND: no cart' }] })
})
