import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { setTimeout as sleep } from 'node:timers/promises'
import { apply, crash, gatewayPods, installProxy, kubectl, list, makeNamespace, ROOT, until, waitForGateway } from './cluster.ts'
import { loadMcpServers } from './mcp-image.ts'

const NAMESPACE = 'mcp'
let origin: string

beforeAll(async () => {
  await Promise.all([installProxy(), loadMcpServers()])
  await makeNamespace(NAMESPACE)
  await apply(NAMESPACE, await readFile(join(ROOT, 'e2e/suites/install/mcp.yaml'), 'utf8'))
  for (const deployment of ['documents', 'everything']) await rolledOut(deployment)
  origin = `http://${await waitForGateway(NAMESPACE, 'tools')}`
  // kube-proxy may have rules for a pod only some time after it is ready.
  let calls = 0
  await until('every data plane serves calls', async () => {
    await search(await connect())
    calls += 1
    return (await countCalls()).every((count) => count > 0)
  })
  // The last response may be counted after it has arrived.
  await until('all calls are counted', async () => sumOf(await countCalls()) === calls)
})
afterAll(() => kubectl('delete', 'namespace', NAMESPACE, '--ignore-not-found', '--wait=false'))

const rolledOut = (deployment: string): Promise<string> => kubectl('-n', NAMESPACE, 'rollout', 'status', `deployment/${deployment}`, '--timeout=600s')
const serverPods = async (): Promise<string[]> => (await list('pods', NAMESPACE, 'app=documents')).map(({ metadata }) => metadata.name)

/** Connection errors if the pod no longer exists: no request was sent, so it is safe to retry. */
const UNSENT = /ECONNREFUSED|EHOSTUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT/

/** Sends each request on a new connection, so that kube-proxy selects a data plane for it. */
async function fetchOnNewConnection(url: string | URL, init?: RequestInit): Promise<Response> {
  const headers = new Headers(init?.headers)
  headers.set('connection', 'close')
  for (let tries = 1; ; tries++) {
    try {
      return await fetch(url, { ...init, headers })
    } catch (error) {
      if (tries === 20 || !UNSENT.test(String((error as { cause?: { code?: unknown } }).cause?.code))) throw error
      await sleep(200)
    }
  }
}

interface Connected {
  readonly client: Pick<Client | ClientV2, 'callTool' | 'listTools'>
  readonly transport: { readonly sessionId: string | undefined }
  /** Number of notifications received from the server. */
  readonly notificationCount: () => number
}

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const client of open.splice(0)) await client.close()
})

/** Connects a client of the official SDK, major version 1 or 2. */
async function connect(sdk = 1): Promise<Connected> {
  const url = new URL(origin)
  const info = { name: 'e2e', version: '1' }
  // A broken stream is opened again, which may take more than the default of two attempts if a data plane was removed.
  const reconnectionOptions = { initialReconnectionDelay: 200, maxReconnectionDelay: 1000, reconnectionDelayGrowFactor: 1.5, maxRetries: 100 }
  const options = { fetch: fetchOnNewConnection, reconnectionOptions }
  let notificationCount = 0
  const onListChanged = (): void => void (notificationCount += 1)
  if (sdk === 1) {
    const [client, transport] = [new Client(info), new StreamableHTTPClientTransport(url, options)]
    client.setNotificationHandler(ToolListChangedNotificationSchema, onListChanged)
    await client.connect(transport)
    open.push(client)
    return { client, transport, notificationCount: () => notificationCount }
  }
  const [client, transport] = [new ClientV2(info), new TransportV2(url, options)]
  client.setNotificationHandler('notifications/tools/list_changed', onListChanged)
  await client.connect(transport)
  open.push(client)
  return { client, transport, notificationCount: () => notificationCount }
}
const connectSome = (count: number): Promise<Connected[]> => Promise.all(Array.from({ length: count }, (_, index) => connect(1 + (index % 2))))

/** Calls a tool. Returns the name of the pod that responded. */
async function search({ client }: Connected): Promise<string> {
  const { content } = await client.callTool({ name: 'search', arguments: { text: 'x' } })
  return /^search in (\S+): "x"$/.exec((content as { text: string }[])[0]?.text ?? '')?.[1] ?? JSON.stringify(content)
}
const searchAll = (clients: readonly Connected[]): Promise<string[]> => Promise.all(clients.map((each) => search(each)))
const idsOf = (clients: readonly Connected[]): (string | undefined)[] => clients.map(({ transport }) => transport.sessionId)
const toolsOf = async ({ client }: Connected): Promise<string[]> => (await client.listTools()).tools.map(({ name }) => name)
const isLost = (error: unknown): boolean => (error as { code?: unknown }).code === 404 || (error as { data?: { status?: unknown } }).data?.status === 404

test('three data planes with clients on new connections lose no session, and each session stays with its server', async () => {
  const before = await countCalls()
  const clients = await connectSome(12)
  const pods = await searchAll(clients)
  // The server of a session is chosen at random and the faster one is preferred: all twelve may be at one.
  while (new Set(pods).size === 1 && clients.length < 300) {
    const one = await connect()
    clients.push(one)
    pods.push(await search(one))
  }
  expect(await serverPods()).toEqual(expect.arrayContaining(pods))
  expect(new Set(pods).size).toBeGreaterThan(1)
  for (let round = 0; round < 10; round++) expect(await searchAll(clients)).toEqual(pods)
  // The last responses may be counted after they have arrived.
  const added = async (): Promise<number[]> => (await countCalls()).map((calls, pod) => calls - (before[pod] ?? 0))
  await until('all calls are counted', async () => sumOf(await added()) === 11 * clients.length)
  expect((await added()).map((calls) => calls > 0)).toEqual([true, true, true])
})

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0)

/** Number of tool calls that each data plane has served. */
async function countCalls(): Promise<number[]> {
  const pods = (await gatewayPods(NAMESPACE, 'tools')).toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  return Promise.all(
    pods.map(async ({ status }) => {
      const text = await (await fetch(`http://${status.podIP}:15020/metrics`)).text()
      return sumOf([...text.matchAll(/^proxy_mcp_requests_total\{[^}]*tools\/call[^}]*\} (\d+)/gm)].map(([, count]) => Number(count)))
    }),
  )
}

test('new sessions list the tools of a Service that got the label or was deleted, and earlier sessions end', async () => {
  const before = await connect()
  expect(await toolsOf(before)).toEqual(['search', 'delete'])
  const more = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'more' },
    spec: { selector: { app: 'everything' }, ports: [{ name: 'mcp', port: 80, targetPort: 3001, appProtocol: 'proxy.dev/mcp' }] },
  }
  await apply(NAMESPACE, more)
  expect(await toolsOf(await connect())).toEqual(['search', 'delete'])
  await kubectl('-n', NAMESPACE, 'label', 'service', 'more', 'team=search')
  const listed = ['documents-mcp_search', 'documents-mcp_delete', 'more-mcp_echo']
  await untilTools((names) => listed.every((name) => names.includes(name)))
  await untilLost(before)
  const both = await connect()
  expect((await both.client.callTool({ name: 'more-mcp_echo', arguments: { message: 'hello' } })).content).toEqual([{ type: 'text', text: 'Echo: hello' }])
  await kubectl('-n', NAMESPACE, 'delete', 'service', 'more')
  await untilTools((names) => names.join() === 'search,delete')
  await untilLost(both)
})

/** Waits until all three data planes list these tools. */
const untilTools = (isExpected: (names: string[]) => boolean): Promise<void> =>
  until('new sessions list what is there', async () => {
    for (let tries = 0; tries < 6; tries++) if (!isExpected(await toolsOf(await connect()))) return false
    return true
  })
const untilLost = (client: Connected): Promise<void> =>
  until('404 for a session that was begun with other targets', () => client.client.listTools().then(() => false, isLost))

test('sessions and their streams survive when data planes are killed', async () => {
  const clients = await connectSome(6)
  const [pods, ids] = [await searchAll(clients), idsOf(clients)]
  const failures: string[] = []
  let isOver = false
  const call = async (client: Connected, pod: string | undefined): Promise<void> => {
    const responder = await Promise.race([search(client), sleep(20_000).then(() => Promise.reject(new Error('no response')))])
    if (responder !== pod) failures.push(`response of ${responder} instead of ${pod}`)
  }
  const load = clients.map(async (client, index) => {
    while (!isOver) await call(client, pods[index]).catch((error: Error) => failures.push(error.message))
  })
  try {
    for (const { metadata } of (await gatewayPods(NAMESPACE, 'tools')).slice(0, 2)) await crash(NAMESPACE, metadata.name)
    await until('they run again', async () => {
      const running = (await gatewayPods(NAMESPACE, 'tools')).map(({ status }) => status.containerStatuses[0] as { ready: boolean; restartCount: number })
      return running.every(({ ready }) => ready) && running.filter(({ restartCount }) => restartCount > 0).length === 2
    })
  } finally {
    isOver = true
    await Promise.all(load)
  }
  // Calls in progress on killed data planes fail; no data plane reports an unknown session.
  expect(failures.filter((text) => !/^(fetch failed|terminated|no response)$/.test(text))).toEqual([])
  expect([await searchAll(clients), idsOf(clients)]).toEqual([pods, ids])
  const notificationCount = clients.map((each) => each.notificationCount())
  await until('every client receives notifications again', async () =>
    clients.every((each, index) => each.notificationCount() > (notificationCount[index] ?? 0) + 1),
  )
})

test('replaced data planes serve the sessions of their predecessors', async () => {
  const clients = await connectSome(6)
  const [pods, ids] = [await searchAll(clients), idsOf(clients)]
  await kubectl('-n', NAMESPACE, 'rollout', 'restart', 'deployment/tools')
  await rolledOut('tools')
  expect([await searchAll(clients), idsOf(clients)]).toEqual([pods, ids])
})

test('restarted servers end their sessions with 404, and clients continue with new sessions', async () => {
  const clients = await connectSome(6)
  const before = new Set(await searchAll(clients))
  await kubectl('-n', NAMESPACE, 'rollout', 'restart', 'deployment/documents')
  const failures = await Promise.all(clients.map((client) => callUntilRenewed(client, before)))
  await rolledOut('documents')
  // A call in progress fails when its server exits; the next call gets 404 for the session.
  expect(failures.flat().filter((text) => !/failed to send message|broke off/.test(text))).toEqual([])
  const pods = await serverPods()
  expect(pods).toEqual(expect.arrayContaining(await searchAll(await connectSome(6))))
})

/** Calls a tool until none of the servers in `before` responds; starts a new session after a 404, as clients must. Returns other errors. */
async function callUntilRenewed(client: Connected, before: ReadonlySet<string>): Promise<string[]> {
  const failures: string[] = []
  let current = client
  const hasNewServer = async (): Promise<boolean> => {
    try {
      return !before.has(await search(current))
    } catch (error) {
      if (isLost(error)) current = await connect()
      else failures.push(String(error))
      return false
    }
  }
  await until('a session with a new server', hasNewServer, 300_000)
  return failures
}
