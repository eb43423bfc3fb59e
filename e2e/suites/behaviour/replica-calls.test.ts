import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { send, type ClientResponse } from '../../harness/client.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePort, findFreePorts } from '../../harness/program/ports.ts'
import { askUser, startMcpUpstream } from '../../harness/upstream/mcp.ts'
import { waitUntil } from '../../harness/wait.ts'

const CALLS = 12
const PREFIX = 'io.modelcontextprotocol/'
const META = { [`${PREFIX}protocolVersion`]: '2026-07-28', [`${PREFIX}clientCapabilities`]: { elicitation: {} } }
const HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': 'tools/call',
  'mcp-name': 'ask',
}

let directory: string
/** Traffic ports of the replicas. */
let ports: readonly number[]
let upstream: Awaited<ReturnType<typeof startMcpUpstream>>
const replicas: Dataplane[] = []

/** The first replica has three workers, the others have one. */
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'replica-calls-'))
  upstream = await startMcpUpstream({ name: 'asking', port: 0, onSession: askUser })
  ports = await findFreePorts(2)
  const peerPort = String(await findFreePort())
  for (const [index, port] of ports.entries()) {
    const file = join(directory, `${index}.json`)
    const backends = [{ mcp: { targets: [{ name: 'ask', static: { host: '127.0.0.1', port: upstream.port } }] } }]
    await writeFile(file, JSON.stringify({ binds: [{ port, listeners: [{ routes: [{ name: 'ask', backends }] }] }] }))
    const env = {
      SESSION_KEY: '5e'.repeat(32),
      INSTANCE_IP: `127.0.0.${index + 1}`,
      PEER_PORT: peerPort,
      CONNECTION_MIN_TERMINATION_DEADLINE: '60s',
      WORKERS: index === 0 ? '3' : '1',
    }
    replicas.push(await startDataplane({ config: { file }, env }))
  }
})
afterAll(async () => {
  for (const replica of replicas) await replica.stop(0)
  await upstream?.close()
  await rm(directory, { recursive: true })
})

const call = (replica: number, params: object = {}): Promise<ClientResponse> =>
  send({
    port: ports[replica] ?? 0,
    path: '/mcp',
    method: 'POST',
    headers: HEADERS,
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'ask', ...params, _meta: META } }),
  })

interface Message {
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string }
}

const messageIn = ({ body }: ClientResponse): Message => JSON.parse(/^data: (.*)$/m.exec(body)?.[1] ?? body) as Message

/** Sends the responses of a user to calls that wait. */
const respond = (replica: number, calls: readonly ClientResponse[]): Promise<Message[]> =>
  Promise.all(
    calls.map(async (waiting, id) => {
      const { result } = messageIn(waiting)
      expect(result?.['resultType']).toBe('input_required')
      const inputResponses = { input_1: { action: 'accept', content: { id: String(id) } } }
      return messageIn(await call(replica, { requestState: result?.['requestState'], inputResponses }))
    }),
  )

const startCalls = (replica: number): Promise<ClientResponse[]> => Promise.all(Array.from({ length: CALLS }, () => call(replica)))
const contentOf = ({ result }: Message): unknown => result?.['content']
const all = Array.from({ length: CALLS }, (_, id) => [{ type: 'text', text: `{"id":"${id}"}` }])

test('calls that wait for input in any worker of a replica continue in another replica', async () => {
  expect((await respond(1, await startCalls(0))).map(contentOf)).toEqual(all)
})

test('calls that wait for input in a replica continue in any worker of another replica', async () => {
  expect((await respond(0, await startCalls(1))).map(contentOf)).toEqual(all)
})

test('calls that wait for input in a replica that drains continue, and are errors when it has ended', async () => {
  const [before, after] = [await startCalls(0), await startCalls(0)]
  const [draining] = replicas
  process.kill(draining?.program.pid ?? 0, 'SIGTERM')
  await waitUntil('the drain', () => draining?.program.lines.some(({ text }) => text.includes('draining')) ?? false)
  expect((await respond(1, before)).map(contentOf)).toEqual(all)
  await draining?.stop(0)
  for (const { error } of await respond(1, after))
    expect([error?.code, error?.message]).toEqual([-32603, expect.stringMatching(/has ended, or the instance of the gateway that has it cannot be reached/)])
})
