import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { findFreePorts } from '../../harness/program/ports.ts'
import { startProgram } from '../../harness/program/program.ts'
import { waitUntil } from '../../harness/wait.ts'
import { startGateway, type E2eGateway } from '../mcp/gateway.ts'
import { startServerV1, startServerV2 } from '../mcp/matrix-servers.ts'

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const PYTHON = file('../../../.tools/mcp-python/bin/python')
const PYTHON_2 = file('../../../.tools/mcp-python2/bin/python')
const GO = file('../../../.tools/mcp-go/matrix')
const PAGE = file('../../../docs/guide/mcp.md')

const FEATURES = ['tools', 'progress', 'elicitation', 'prompts', 'resources'] as const
type Results = Record<string, unknown>

/** Servers of the matrix, as the page names them. `all` is a federation of the others. */
const SERVERS = {
  ts1: 'TypeScript SDK 1',
  py1: 'Python SDK 1.30',
  ts2: 'TypeScript SDK 2, 2026-07-28 only',
  py2: 'Python SDK 2.3',
  go: 'Go SDK 1.8',
  all: 'the five as one',
} as const
type Backend = keyof typeof SERVERS
const backends = Object.keys(SERVERS) as Backend[]
const prefixesOf = (backend: Backend): string[] => (backend === 'all' ? backends.filter((name) => name !== 'all') : [])

let gateway: E2eGateway
const closing: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  const [one, two] = [await startServerV1(), await startServerV2()]
  const [py1 = 0, py2 = 0, go = 0] = await findFreePorts(3)
  const programs = [
    startProgram({ name: 'python', command: PYTHON, args: [file('../mcp/server.py'), String(py1)] }),
    startProgram({ name: 'python2', command: PYTHON_2, args: [file('./server2.py'), String(py2)] }),
    startProgram({ name: 'go', command: GO, args: ['server', String(go)] }),
  ]
  closing.push(
    () => one.close(),
    () => two.close(),
    ...programs.map((program) => () => program.stop(100)),
  )
  const isReady = (port: number): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    )
  for (const port of [py1, py2, go]) await waitUntil(`the server at port ${port}`, () => isReady(port), 240_000)
  const targets = [
    { name: 'ts1', port: one.port },
    { name: 'py1', port: py1 },
    { name: 'ts2', port: two.port },
    { name: 'py2', port: py2 },
    { name: 'go', port: go },
  ]
  const single = targets.map((target) => [target.name, { targets: [target] }])
  gateway = await startGateway({ ...(Object.fromEntries(single) as Record<string, { targets: typeof targets }>), all: { targets } })
})
afterAll(async () => {
  await gateway?.stop()
  for (const close of closing) await close()
})

/** What the clients of both TypeScript SDKs have in common. */
type AnyClient = Pick<Client, 'close'> & {
  listTools(): Promise<{ tools: { name: string }[] }>
  call(name: string, args: object, onProgress?: (progress: number) => void): Promise<unknown>
  getPrompt(params: { name: string; arguments: Record<string, string> }): Promise<{ messages: { content: unknown }[] }>
  readResource(params: { uri: string }): Promise<{ contents: object[] }>
}

const accepted = { action: 'accept' as const, content: { name: 'me' } }

async function clientV1(url: string): Promise<AnyClient> {
  const client = new Client({ name: 'e2e', version: '1' }, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, () => accepted)
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  return Object.assign(client, {
    call: (name: string, args: object, onProgress?: (progress: number) => void) =>
      client.callTool({ name, arguments: { ...args } }, undefined, onProgress && { onprogress: ({ progress }) => onProgress(progress) }),
  })
}

const clientV2 =
  (mode: 'auto' | 'legacy') =>
  async (url: string): Promise<AnyClient> => {
    const client = new ClientV2({ name: 'e2e', version: '1' }, { versionNegotiation: { mode }, capabilities: { elicitation: {} } })
    client.setRequestHandler('elicitation/create', () => accepted)
    await client.connect(new TransportV2(new URL(url)))
    return Object.assign(client, {
      call: (name: string, args: object, onProgress?: (progress: number) => void) =>
        client.callTool({ name, arguments: { ...args } }, onProgress && { onprogress: ({ progress }) => onProgress(progress) }),
    })
  }

const textOf = (result: unknown): string => (result as { content: { text: string }[] }).content[0]?.text ?? ''

const trials: Record<(typeof FEATURES)[number], (client: AnyClient, names: string, uris: string) => Promise<boolean>> = {
  async tools(client, names) {
    const { tools } = await client.listTools()
    return tools.some(({ name }) => name === `${names}add`) && textOf(await client.call(`${names}add`, { a: 2, b: 3 })) === '5'
  },
  async progress(client, names) {
    const seen: number[] = []
    const result = await client.call(`${names}count`, { to: 3 }, (progress) => seen.push(progress))
    return textOf(result) === 'counted to 3' && seen.join(' ') === '1 2 3'
  },
  elicitation: async (client, names) => (JSON.parse(textOf(await client.call(`${names}who`, {}))) as { name: string }).name === 'me',
  async prompts(client, names) {
    const { messages } = await client.getPrompt({ name: `${names}ask`, arguments: { topic: 'life' } })
    return messages.length === 1 && (messages[0] as { content: { text: string } }).content.text === 'What is life?'
  },
  async resources(client, _, uris) {
    const { contents } = await client.readResource({ uri: `${uris}note://x` })
    return contents.length === 1 && (contents[0] as { text: string }).text === 'note x'
  },
}

async function tryFeatures(client: AnyClient, backend: Backend): Promise<Results> {
  const results: Results = {}
  const prefixes = prefixesOf(backend)
  for (const feature of FEATURES) {
    const runs = prefixes.length === 0 ? [trials[feature](client, '', '')] : prefixes.map((name) => trials[feature](client, `${name}_`, `${name}+`))
    results[feature] = await Promise.all(runs).then(
      (all) => all.every(Boolean),
      (error: Error) => error.message,
    )
  }
  await client.close()
  return results
}

async function tryAll(connect: (url: string) => Promise<AnyClient>): Promise<Record<string, Results>> {
  const results: Record<string, Results> = {}
  for (const backend of backends) results[backend] = await tryFeatures(await connect(gateway.url(backend)), backend)
  return results
}

/** Runs a client that prints its results. Its arguments are `before`, the backends, `after`. */
async function tryProgram(command: string, before: readonly string[], after: readonly string[] = []): Promise<Record<string, Results>> {
  const sent = Object.fromEntries(backends.map((backend) => [backend, { url: gateway.url(backend), prefixes: prefixesOf(backend) }]))
  const { stdout } = await promisify(execFile)(command, [...before, JSON.stringify(sent), ...after])
  return JSON.parse(stdout) as Record<string, Results>
}

const CLIENTS: Record<string, () => Promise<Record<string, Results>>> = {
  'TypeScript SDK 1': () => tryAll(clientV1),
  'TypeScript SDK 2, `legacy`': () => tryAll(clientV2('legacy')),
  'TypeScript SDK 2, 2026-07-28': () => tryAll(clientV2('auto')),
  'Python SDK 1.30': () => tryProgram(PYTHON, [file('./matrix.py')]),
  'Python SDK 2.3, `legacy`': () => tryProgram(PYTHON_2, [file('./matrix.py')], ['legacy']),
  'Python SDK 2.3, 2026-07-28': () => tryProgram(PYTHON_2, [file('./matrix.py')], ['auto']),
  'Go SDK 1.8, 2025-11-25': () => tryProgram(GO, ['client', '2025-11-25']),
  'Go SDK 1.8, 2026-07-28': () => tryProgram(GO, ['client', '2026-07-28']),
}

const isComplete = (results: Results | undefined): boolean => FEATURES.every((feature) => results?.[feature] === true)

test.each(Object.entries(CLIENTS))('a client of %s uses all features of servers of all revisions', async (name, run) => {
  const results = await run()
  expect(results).toEqual(Object.fromEntries(backends.map((backend) => [backend, Object.fromEntries(FEATURES.map((feature) => [feature, true]))])))
  const row = [name, ...backends.map((backend) => (isComplete(results[backend]) ? 'all' : 'some'))]
  // The page has the same table.
  expect(await readFile(PAGE, 'utf8')).toContain(`| ${row.join(' | ')} |`)
})

test('the guide names the servers and features of the matrix', async () => {
  const page = await readFile(PAGE, 'utf8')
  expect(page).toContain(`| client | ${Object.values(SERVERS).join(' | ')} |`)
  for (const feature of FEATURES) expect(page).toContain(feature)
})
