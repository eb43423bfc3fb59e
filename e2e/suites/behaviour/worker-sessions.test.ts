import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request as requestHttp } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { send, type ClientResponse } from '../../harness/client.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { askUser, startMcpUpstream } from '../../harness/upstream/mcp.ts'
import { waitUntil } from '../../harness/wait.ts'

const CALLS = 12
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

let directory: string
let port = 0
let dataplane: Dataplane
let upstream: Awaited<ReturnType<typeof startMcpUpstream>>
let asking: Awaited<ReturnType<typeof startMcpUpstream>>

const backendOf = (protocol: string, path: string, to = upstream.port) => ({
  mcp: { targets: [{ name: 'books', static: { host: '127.0.0.1', port: to, protocol, path } }] },
})
const initialize = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
})
const initialized = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })
const callOf = (id: number) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'search', arguments: { text: `text ${id}` } } })
/** Each request is on a connection of its own, which any worker may accept. */
const post = (path: string, body: string, headers: Record<string, string> = {}): Promise<ClientResponse> =>
  send({ port, path, method: 'POST', headers: { ...HEADERS, ...headers }, body })

async function startSession(path: string): Promise<Record<string, string>> {
  const response = await post(path, initialize)
  expect(response.status).toBe(200)
  const session = { 'mcp-session-id': String(response.headers['mcp-session-id']) }
  expect((await post(path, initialized, session)).status).toBe(202)
  return session
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'worker-sessions-'))
  upstream = await startMcpUpstream({ name: 'books', port: await findFreePort() })
  asking = await startMcpUpstream({ name: 'asking', port: 0, onSession: askUser })
  port = await findFreePort()
  const file = join(directory, 'config.json')
  const route = (path: string, backend: object) => ({ matches: [{ path: { type: 'PathPrefix', value: path } }], backends: [backend] })
  const routes = [
    route('/mcp', backendOf('StreamableHTTP', '/mcp')),
    route('/live', backendOf('SSE', '/sse')),
    route('/ask', backendOf('StreamableHTTP', '/mcp', asking.port)),
    route('/sse', backendOf('StreamableHTTP', '/mcp')),
  ]
  await writeFile(file, JSON.stringify({ binds: [{ port, listeners: [{ routes }] }] }))
  dataplane = await startDataplane({ config: { file }, env: { WORKERS: '3' } })
})
afterAll(async () => {
  await dataplane?.stop()
  await upstream?.close()
  await asking?.close()
  await rm(directory, { recursive: true })
})

describe('an MCP session with three workers', () => {
  test('is used by requests to all workers, and ends in all of them', async () => {
    const session = await startSession('/mcp')
    const calls = await Promise.all(Array.from({ length: CALLS }, (_, id) => post('/mcp', callOf(id + 1), session)))
    for (const [id, { status, body }] of calls.entries()) expect([status, body.includes(`text ${id + 1}`)]).toEqual([200, true])
    expect((await send({ port, path: '/mcp', method: 'DELETE', headers: session })).status).toBe(204)
    const after = await Promise.all(Array.from({ length: CALLS }, (_, id) => post('/mcp', callOf(id + 1), session)))
    expect(new Set(after.map(({ status }) => status))).toEqual(new Set([404]))
  })

  test('with a live connection to its server is used by requests to all workers', async () => {
    const session = await startSession('/live')
    const calls = await Promise.all(Array.from({ length: CALLS }, (_, id) => post('/live', callOf(id + 1), session)))
    for (const [id, { status, body }] of calls.entries()) expect([status, body.includes(`text ${id + 1}`)]).toEqual([200, true])
    // One line of access log for each, from the worker that handled it, with the address of the client.
    const lines = () => dataplane.program.lines.filter(({ text }) => text.includes(' http.path=/live '))
    await waitUntil('the access log', () => lines().length === CALLS + 2)
    for (const { text } of lines()) expect(text).toMatch(/src\.addr=127\.0\.0\.1:\d+ /)
  })

  test('of an HTTP+SSE client receives the responses to messages that any worker accepted', async () => {
    const client = await SseClient.open(port, '/sse')
    await waitUntil('the endpoint event', () => client.endpoint !== undefined)
    const path = client.endpoint ?? ''
    expect((await post(path, initialize)).status).toBe(202)
    await waitUntil('the response to initialize', () => client.received.includes('"id":0'))
    expect((await post(path, initialized)).status).toBe(202)
    const accepted = await Promise.all(Array.from({ length: CALLS }, (_, id) => post(path, callOf(id + 1))))
    expect(new Set(accepted.map(({ status }) => status))).toEqual(new Set([202]))
    await waitUntil('all responses', () => Array.from({ length: CALLS }, (_, id) => id + 1).every((id) => client.received.includes(`text ${id}`)))
    client.close()
    await waitUntil('the end of the session', async () => (await post(path, callOf(99))).status === 404)
  })
})

test('a call that waits for input continues in the worker that holds it, whichever receives the retry', async () => {
  const [calls, retries] = await withInput()
  expect(calls.map(({ body }) => resultOf(body)['resultType'])).toEqual(Array.from({ length: CALLS }, () => 'input_required'))
  expect(retries.map(({ body }) => resultOf(body)['content'])).toEqual(Array.from({ length: CALLS }, (_, id) => [{ type: 'text', text: `{"id":"${id}"}` }]))
})

describe('the sockets between workers', () => {
  test('reject a connection without the secret', async () => {
    const paths = (await unixSockets()).filter((path) => path.startsWith(`@proxy-worker-${dataplane.program.pid}-`))
    expect(paths).toHaveLength(3)
    const socket = connect({ path: `\0${paths[0]?.slice(1)}` })
    socket.write(`${JSON.stringify({ secret: 'x'.repeat(64), version: 'HTTP/1.1', connection: { bind: `${port}`, remoteAddress: '10.0.0.1' } })}\n`)
    socket.write(`GET /mcp HTTP/1.1\r\nhost: a\r\n\r\n`)
    expect(await textOf(socket)).toBe('')
  })
})

const resultOf = (body: string): Record<string, unknown> => (JSON.parse(/^data: (.*)$/m.exec(body)?.[1] ?? body) as { result: Record<string, unknown> }).result

/** Calls of a tool that requires input, and their retries with it. */
async function withInput(): Promise<[ClientResponse[], ClientResponse[]]> {
  const prefix = 'io.modelcontextprotocol/'
  const meta = { [`${prefix}protocolVersion`]: '2026-07-28', [`${prefix}clientCapabilities`]: { elicitation: {} } }
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'ask' }
  const call = (params: object): Promise<ClientResponse> =>
    post('/ask', JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'ask', ...params, _meta: meta } }), headers)
  const calls = await Promise.all(Array.from({ length: CALLS }, () => call({})))
  const retries = calls.map(({ body }, id) => {
    const inputResponses = { input_1: { action: 'accept', content: { id: String(id) } } }
    return call({ requestState: resultOf(body)['requestState'], inputResponses })
  })
  return [calls, await Promise.all(retries)]
}

class SseClient {
  received = ''
  readonly #close: () => void

  constructor(close: () => void) {
    this.#close = close
  }

  static open(to: number, path: string): Promise<SseClient> {
    return new Promise((resolve, reject) => {
      const request = requestHttp({ port: to, path, headers: { accept: 'text/event-stream' } }, (response) => {
        const client = new SseClient(() => request.destroy())
        response.setEncoding('utf8').on('data', (text: string) => (client.received += text))
        response.on('error', () => undefined)
        resolve(client)
      })
      request.once('error', reject).end()
    })
  }

  get endpoint(): string | undefined {
    return /event: ?endpoint\ndata: ?(\S+)\n/.exec(this.received)?.[1]
  }

  close(): void {
    this.#close()
  }
}

async function unixSockets(): Promise<string[]> {
  const lines = (await readFile('/proc/net/unix', 'utf8')).split('\n')
  return [...new Set(lines.map((line) => line.split(/\s+/)[7] ?? ''))]
}

function textOf(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    socket.on('error', () => undefined).on('close', () => resolve(text))
  })
}
