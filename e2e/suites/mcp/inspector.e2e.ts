import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { findFreePorts } from '../../harness/program/ports.ts'
import { startProgram, type Program } from '../../harness/program/program.ts'
import { waitUntil } from '../../harness/wait.ts'
import { startGateway, type E2eGateway } from './gateway.ts'

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const EVERYTHING = file('../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const INSPECTOR = file('../../../.tools/inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js')

let server: Program
let gateway: E2eGateway

beforeAll(async () => {
  const [port = 0] = await findFreePorts(1)
  server = startProgram({ name: 'everything', args: [EVERYTHING, 'streamableHttp'], env: { PORT: String(port) } })
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    )
  await waitUntil('the server', isReady, 240_000)
  const [a, b] = [
    { name: 'a', port },
    { name: 'b', port },
  ]
  gateway = await startGateway({ one: { targets: [a] }, two: { targets: [a, b] }, stateless: { targets: [a, b], sessionRouting: 'Stateless' } })
})
afterAll(async () => {
  await gateway?.stop()
  await server?.stop(100)
})

/** Runs the command of docs/guide/mcp.md. */
async function inspect(url: string, ...args: string[]): Promise<unknown> {
  const transport = url.endsWith('/sse') ? 'sse' : 'http'
  const { stdout } = await promisify(execFile)(process.execPath, [INSPECTOR, '--cli', url, '--transport', transport, ...args], {
    timeout: 240_000,
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  return JSON.parse(stdout)
}

const namesIn = (list: unknown): string[] => (list as { tools: { name: string }[] }).tools.map(({ name }) => name)
const call = (tool: string) => ['--method', 'tools/call', '--tool-name', tool, '--tool-arg', 'message=hello']
const echoed = { content: [{ type: 'text', text: 'Echo: hello' }] }

test.each([
  ['one target', 'one', ['echo'], 'echo'],
  ['two targets', 'two', ['a_echo', 'b_echo'], 'b_echo'],
  ['two targets without sessions', 'stateless', ['a_echo', 'b_echo'], 'b_echo'],
])(
  'MCP Inspector lists and calls tools: %s',
  async (_, backend, names, tool) => {
    const url = gateway.url(backend)
    expect(namesIn(await inspect(url, '--method', 'tools/list'))).toEqual(expect.arrayContaining(names))
    expect(await inspect(url, ...call(tool))).toMatchObject(echoed)
  },
  600_000,
)

test('MCP Inspector calls a tool over the older SSE transport', async () => {
  expect(await inspect(gateway.sseUrl('two'), ...call('a_echo'))).toMatchObject(echoed)
}, 300_000)
