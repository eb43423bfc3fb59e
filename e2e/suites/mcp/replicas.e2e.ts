import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { replaceFile } from '../../harness/files.ts'
import { startMcpUpstream } from '../../harness/upstream/mcp.ts'
import { startOperator, type Operator } from '../../harness/program/operator.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'

// Three data planes that serve one backend, like replicas. On one machine each belongs to its own Gateway, because each needs its own port.
type Upstream = Awaited<ReturnType<typeof startMcpUpstream>>

let directory: string
let operator: Operator
let ports: number[]
const replicas: Dataplane[] = []
const upstreams: Upstream[] = []

const manifests = (endpoints: readonly Upstream[]): string => `
${ports.map((port, index) => `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: gw${index}}, spec: {gatewayClassName: proxy, listeners: [{name: http, port: ${port}, protocol: HTTP}]}}`).join('\n---\n')}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: mcp }
spec:
  parentRefs: [${ports.map((_, index) => `{name: gw${index}}`).join(', ')}]
  rules: [{ backendRefs: [{ group: proxy.dev, kind: ProxyBackend, name: tools }] }]
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: { name: tools }
spec: { mcp: { targets: [{ name: all, selector: { services: { matchLabels: { mcp: "yes" } } } }] } }
---
apiVersion: v1
kind: Service
metadata:
  name: documents
  labels: { mcp: "yes" }
  annotations: { proxy.dev/endpoints: "${endpoints.map(({ port }) => `127.0.0.1:${port}`).join(',')}" }
spec: { ports: [{ port: 80, appProtocol: proxy.dev/mcp }] }
`

async function apply(endpoints: readonly Upstream[]): Promise<void> {
  await replaceFile(join(directory, 'manifests.yaml'), manifests(endpoints))
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mcp-replicas-'))
  ports = await findFreePorts(3)
  for (let index = 0; index < 3; index++) upstreams.push(await startMcpUpstream({ name: 'documents', port: 0 }))
  await apply(upstreams)
  operator = await startOperator({ directory })
  for (const index of ports.keys()) {
    const config = { address: operator.address, namespace: 'default', gateway: `gw${index}` }
    replicas.push(await startDataplane({ config, env: { SESSION_KEY: '5e'.repeat(32) } }))
  }
}, 400_000)
afterAll(async () => {
  for (const replica of replicas) await replica.stop(100)
  await operator?.stop()
  for (const upstream of upstreams) await upstream.close()
  await rm(directory, { recursive: true, force: true })
})

let turn = 0
/** Sends each request to the next replica and skips replicas that refuse connections, like a Service. */
async function roundRobin(url: string | URL, init?: RequestInit): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const target = new URL(url)
    target.port = String(ports[turn++ % ports.length])
    try {
      return await fetch(target, init)
    } catch (error) {
      if (tries === ports.length || init?.signal?.aborted === true) throw error
    }
  }
}
async function connect(): Promise<{ client: Client; transport: StreamableHTTPClientTransport }> {
  const client = new Client({ name: 'e2e', version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${ports[0]}/mcp`), { fetch: roundRobin })
  await client.connect(transport)
  return { client, transport }
}
const search = async ({ client }: { client: Client }): Promise<unknown> => (await client.callTool({ name: 'search', arguments: { text: 'x' } })).content
const found = [{ type: 'text', text: 'search in documents: "x"' }]
/** Session ids of the tool calls that a server received. */
const sessionsOf = ({ received }: Upstream): Set<unknown> => new Set(received.map(({ headers }) => headers['mcp-session-id']).filter((id) => id !== undefined))

test('requests of a session can reach any of three replicas and always reach the same server', async () => {
  const clients = await Promise.all(Array.from({ length: 9 }, () => connect()))
  // The server of a session is chosen at random: nine sessions may miss one of three servers, two hundred do not.
  const isServerLeftOut = (): boolean => upstreams.some((upstream) => sessionsOf(upstream).size === 0)
  while (isServerLeftOut() && clients.length < 200) clients.push(await connect())
  for (let round = 0; round < 6; round++) expect(await Promise.all(clients.map((each) => search(each)))).toEqual(clients.map(() => found))
  const sizes = upstreams.map((upstream) => sessionsOf(upstream).size)
  expect([sizes.reduce((sum, size) => sum + size, 0), isServerLeftOut()]).toEqual([clients.length, false])
  for (const { client } of clients) await client.close()
})

test('sessions survive when a replica is killed', async () => {
  const clients = await Promise.all(Array.from({ length: 6 }, () => connect()))
  await Promise.all(clients.map((each) => search(each)))
  const ids = clients.map(({ transport }) => transport.sessionId)
  await replicas[0]?.stop(0)
  for (let round = 0; round < 4; round++) expect(await Promise.all(clients.map((each) => search(each)))).toEqual(clients.map(() => found))
  expect(clients.map(({ transport }) => transport.sessionId)).toEqual(ids)
  for (const { client } of clients) await client.close()
})

test('restarted servers end their sessions with 404, and clients continue with new sessions', async () => {
  const one = await connect()
  expect(await search(one)).toEqual(found)
  const next = await startMcpUpstream({ name: 'documents', port: 0 })
  await apply([next])
  for (const upstream of upstreams.splice(0, upstreams.length, next)) await upstream.close()
  await waitUntil('the end of the session', () =>
    search(one).then(
      () => false,
      (error: { code?: number }) => error.code === 404,
    ),
  )
  await one.client.close()
  await waitUntil('a new session', async () => {
    const again = await connect()
    const content = await search(again)
    await again.client.close()
    return JSON.stringify(content) === JSON.stringify(found)
  })
  expect(sessionsOf(next).size).toBeGreaterThan(0)
})
