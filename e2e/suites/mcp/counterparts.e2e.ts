import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { findFreePorts } from '../../harness/program/ports.ts'
import { startProgram, type Program } from '../../harness/program/program.ts'
import { waitUntil } from '../../harness/wait.ts'
import { startGateway, type E2eGateway } from './gateway.ts'

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const EVERYTHING = file('../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const PYTHON = file('../../../.tools/mcp-python/bin/python')

const programs: Program[] = []
let gateway: E2eGateway

beforeAll(async () => {
  const [everything = 0, everythingSse = 0, python = 0] = await findFreePorts(3)
  programs.push(
    startProgram({ name: 'everything', args: [EVERYTHING, 'streamableHttp'], env: { PORT: String(everything) } }),
    startProgram({ name: 'everything over SSE', args: [EVERYTHING, 'sse'], env: { PORT: String(everythingSse) } }),
    startProgram({ name: 'python', command: PYTHON, args: [file('./server.py'), String(python)] }),
  )
  const isReady = (port: number) =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    )
  for (const port of [everything, everythingSse, python]) await waitUntil(`a server on ${port}`, () => isReady(port), 240_000)
  const targets = [
    { name: 'every', port: everything },
    { name: 'sse', port: everythingSse, protocol: 'SSE' as const },
    { name: 'py', port: python },
  ]
  gateway = await startGateway({
    all: { targets },
    stateless: { targets, sessionRouting: 'Stateless' },
    every: { targets: targets.slice(0, 1) },
    sse: { targets: targets.slice(1, 2) },
    py: { targets: targets.slice(2) },
  })
})
afterAll(async () => {
  await gateway?.stop()
  for (const program of programs) await program.stop(100)
})

async function connect(url: string): Promise<Client> {
  const client = new Client({ name: 'e2e', version: '1' }, { capabilities: { sampling: {}, roots: {}, elicitation: {} } })
  client.setRequestHandler(CreateMessageRequestSchema, () => ({ model: 'm', role: 'assistant', content: { type: 'text', text: 'sampled' } }))
  await client.connect(url.endsWith('/sse') ? new SSEClientTransport(new URL(url)) : new StreamableHTTPClientTransport(new URL(url)))
  return client
}
const textOf = (result: unknown): string => JSON.stringify((result as { content: unknown }).content)

describe.each(['all', 'stateless'])('three servers of two teams behind one backend: %s', (backend) => {
  test('lists contain the items of all servers, and calls reach each server', async () => {
    const client = await connect(gateway.url(backend))
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['every_echo', 'sse_echo', 'py_add']))
    expect(textOf(await client.callTool({ name: 'every_echo', arguments: { message: 'one' } }))).toContain('Echo: one')
    expect(textOf(await client.callTool({ name: 'sse_echo', arguments: { message: 'two' } }))).toContain('Echo: two')
    expect(textOf(await client.callTool({ name: 'py_add', arguments: { a: 2, b: 3 } }))).toContain('5')
    expect((await client.readResource({ uri: 'py+note://x' })).contents).toEqual([{ uri: 'py+note://x', mimeType: 'text/plain', text: 'note x' }])
    expect((await client.getPrompt({ name: 'py_ask', arguments: { topic: 'life' } })).messages[0]?.content).toEqual({ type: 'text', text: 'What is life?' })
    await client.close()
  })
})

test('progress notifications of the Python server reach the client', async () => {
  for (const [backend, name] of [['py', 'count'] as const, ['all', 'py_count'] as const]) {
    const client = await connect(gateway.url(backend))
    const seen: number[] = []
    expect(textOf(await client.callTool({ name, arguments: { to: 3 } }, undefined, { onprogress: ({ progress }) => void seen.push(progress) }))).toContain(
      'counted to 3',
    )
    expect(seen).toEqual([1, 2, 3])
    await client.close()
  }
})

test.each([
  ['every', 'trigger-sampling-request'],
  ['sse', 'trigger-sampling-request'],
  ['all', 'every_trigger-sampling-request'],
  ['all', 'sse_trigger-sampling-request'],
])('sampling requests of server-everything reach the client: backend %s, tool %s', async (backend, name) => {
  const client = await connect(gateway.url(backend))
  // The server offers this tool after it knows the capabilities of the client.
  await waitUntil('the tool', async () => (await client.listTools()).tools.some((tool) => tool.name === name))
  expect(textOf(await client.callTool({ name, arguments: { prompt: 'p', maxTokens: 5 } }))).toContain('sampled')
  await client.close()
})

test('clients of the older SSE transport work with one server and with three', async () => {
  for (const [backend, name] of [['every', 'echo'] as const, ['all', 'sse_echo'] as const]) {
    const client = await connect(gateway.sseUrl(backend))
    expect(textOf(await client.callTool({ name, arguments: { message: 'old' } }))).toContain('Echo: old')
    await client.close()
  }
})

test.each(['legacy', 'auto'] as const)('the client of SDK 2 works with negotiation mode %s', async (mode) => {
  const client = new ClientV2({ name: 'e2e', version: '1' }, { versionNegotiation: { mode } })
  await client.connect(new TransportV2(new URL(gateway.url('all'))))
  expect((await client.listTools()).tools.length).toBeGreaterThan(10)
  expect(textOf(await client.callTool({ name: 'py_add', arguments: { a: 1, b: 1 } }))).toContain('2')
  await client.close()
})
