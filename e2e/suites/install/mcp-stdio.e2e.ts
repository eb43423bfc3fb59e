import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { apply, conditionOf, installProxy, kubectl, list, makeNamespace, read, until, waitForGateway, type Stored } from './cluster.ts'
import { BARE_IMAGE, IMAGE, loadBareServer, loadMcpServers } from './mcp-image.ts'

/** MCP servers that speak stdio, run by the operator from images: one with Node and glibc, and one without any library. */

const NAMESPACE = 'mcp-stdio'
const OWNED = 'proxy.dev/mcp-backend=tools'
let origin: URL

const everything = { name: 'everything', image: IMAGE, command: ['node', '/servers/bin/everything.js', 'stdio'], env: { TOKEN: 'a$(PATH)$b' } }
const bare = { name: 'bare', image: BARE_IMAGE, command: ['server', 'stdio'] }
const backend = (...targets: object[]): object => ({
  apiVersion: 'proxy.dev/v1alpha1',
  kind: 'ProxyBackend',
  metadata: { name: 'tools' },
  spec: { mcp: { targets, failureMode: 'FailOpen', prefixMode: 'Always' } },
})
const parameters = (mcp: object): object => ({ apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyParameters', metadata: { name: 'tools' }, spec: { mcp } })

beforeAll(async () => {
  await Promise.all([installProxy(), loadMcpServers().then(loadBareServer)])
  await makeNamespace(NAMESPACE)
  const parametersRef = { group: 'proxy.dev', kind: 'ProxyParameters', name: 'tools' }
  await apply(
    NAMESPACE,
    parameters({}),
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'Gateway',
      metadata: { name: 'web' },
      spec: { gatewayClassName: 'proxy', infrastructure: { parametersRef }, listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
    },
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'HTTPRoute',
      metadata: { name: 'tools' },
      spec: { parentRefs: [{ name: 'web' }], rules: [{ backendRefs: [{ group: 'proxy.dev', kind: 'ProxyBackend', name: 'tools' }] }] },
    },
    backend(everything, bare),
  )
  origin = new URL(`http://${await waitForGateway(NAMESPACE, 'web')}`)
})
afterAll(() => kubectl('delete', 'namespace', NAMESPACE, '--ignore-not-found', '--wait=false'))

const condition = async (type: string) => {
  const { status = '', reason = '', message = '' } = conditionOf(await read('proxybackend', 'tools', NAMESPACE), type) ?? {}
  return { status, reason, message }
}
const owned = async (kind: string): Promise<Stored[]> => list(kind, NAMESPACE, OWNED)
const namesOf = (objects: readonly Stored[]): string[] => objects.map(({ metadata }) => metadata.name)
const untilReady = (): Promise<void> => until('the servers are ready', async () => (await condition('ServersReady')).status === 'True', 300_000)

/** Connects a client of the official SDK, major version 1 or 2, and runs `use` with it. */
async function withClient<T>(sdk: 1 | 2, use: (client: Pick<Client | ClientV2, 'callTool' | 'listTools'>) => Promise<T>): Promise<T> {
  const info = { name: 'e2e', version: '1' }
  const client = sdk === 1 ? new Client(info) : new ClientV2(info)
  if (client instanceof Client) await client.connect(new StreamableHTTPClientTransport(origin))
  else await client.connect(new TransportV2(origin))
  try {
    return await use(client)
  } finally {
    await client.close()
  }
}
const call = (sdk: 1 | 2, name: string, args: Record<string, unknown>): Promise<string> =>
  withClient(sdk, async (client) => ((await client.callTool({ name, arguments: args })).content as { text: string }[])[0]?.text ?? '')

/** Name of the pod that serves a client: its server reports its environment. */
async function podOf(client: Pick<Client | ClientV2, 'callTool'>): Promise<string> {
  const { content } = await client.callTool({ name: 'everything_get-env', arguments: {} })
  return (JSON.parse((content as { text: string }[])[0]?.text ?? '{}') as { HOSTNAME?: string }).HOSTNAME ?? ''
}
const isLost = (error: unknown): boolean => (error as { code?: unknown }).code === 404

test('servers of images that ProxyParameters do not list are not started, and the backend names the permission', async () => {
  await until('the backend names the permission', async () => (await condition('Accepted')).message.includes('spec.mcp.images'))
  expect((await condition('Accepted')).reason).toBe('PartiallyValid')
  expect(await owned('deployments')).toEqual([])
})

test('permitted servers run with the overlays, and their tools are called by clients of both SDKs', async () => {
  const spec = { template: { spec: { containers: [{ name: 'server', resources: { limits: { memory: '700Mi' } } }] } } }
  await apply(
    NAMESPACE,
    parameters({
      images: ['localhost'],
      deployment: { metadata: { labels: { team: 'search' } }, spec },
      serviceAccount: { metadata: { labels: { team: 'search' } } },
    }),
  )
  await untilReady()
  expect((await condition('Accepted')).reason).toBe('Accepted')
  const [deployment] = await owned('deployments')
  expect(deployment?.metadata.labels?.['team']).toBe('search')
  expect(deployment?.spec.template.spec.containers[0].resources.limits).toEqual({ memory: '700Mi' })
  expect((await owned('serviceaccounts')).map(({ metadata }) => metadata.labels?.['team'])).toEqual(['search', 'search'])
  await until('both list their tools', () =>
    withClient(1, async (client) => {
      const names = (await client.listTools()).tools.map(({ name }) => name)
      return names.includes('everything_echo') && names.includes('bare_add')
    }),
  )
  for (const sdk of [1, 2] as const) {
    expect(await call(sdk, 'everything_echo', { message: 'hello' })).toBe('Echo: hello')
    expect(await call(sdk, 'bare_add', { a: 2, b: 3 })).toBe('5')
  }
})

test('a server has the environment of its image and of its target, and nothing of the bridge', async () => {
  const environment = JSON.parse(await call(1, 'everything_get-env', {})) as Record<string, string>
  expect(environment['TOKEN']).toBe('a$(PATH)$b')
  expect(environment['PATH']).toContain('/usr/local/bin')
  expect(Object.keys(environment).filter((name) => /^(LD_|MCP_BRIDGE)/.test(name))).toEqual([])
})

test('each session has a process, which ends with it', async () => {
  const name = namesOf(await owned('deployments')).find((each) => each.includes('everything')) ?? ''
  const [pod = ''] = namesOf(await list('pods', NAMESPACE, `app.kubernetes.io/name=${name}`))
  const script = `const { readdirSync, readFileSync } = require('node:fs')
    const commandOf = (pid) => readFileSync('/proc/' + pid + '/cmdline', 'utf8').split('\\0')
    console.log(readdirSync('/proc').filter((pid) => Number(pid) > 0 && commandOf(pid)[1] === '/servers/bin/everything.js').length)`
  const countProcesses = async (): Promise<number> => Number(await kubectl('-n', NAMESPACE, 'exec', pod, '-c', 'server', '--', 'node', '-e', script))
  const client = new Client({ name: 'e2e', version: '1' })
  const transport = new StreamableHTTPClientTransport(origin)
  await client.connect(transport)
  await client.listTools()
  const during = await countProcesses()
  expect(during).toBeGreaterThan(0)
  await transport.terminateSession()
  await until('the process has ended', async () => (await countProcesses()) < during)
  await client.close()
})

test('with two replicas, a session stays with its pod and ends with it, and clients without sessions go on with another pod', async () => {
  await apply(NAMESPACE, parameters({ images: ['localhost'], deployment: { spec: { replicas: 2 } } }))
  // The pods are replaced, too, because the memory limit of the overlay goes: sessions are opened when no earlier pod is left.
  await until('two replicas are wanted', async () => (await owned('deployments')).every(({ spec }) => spec.replicas === 2))
  const deployments = namesOf(await owned('deployments'))
  for (const each of deployments) await kubectl('-n', NAMESPACE, 'rollout', 'status', `deployment/${each}`, '--timeout=300s')
  const name = deployments.find((each) => each.includes('everything')) ?? ''
  const readyPods = async (): Promise<string[]> =>
    (await list('pods', NAMESPACE, `app.kubernetes.io/name=${name}`))
      .filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && conditionOf({ status } as Stored, 'Ready')?.status === 'True')
      .map(({ metadata }) => metadata.name)
  await until('both pods are ready', async () => (await readyPods()).length === 2, 300_000)
  const sessions: { readonly client: Client; readonly pod: string }[] = []
  const open = async (): Promise<string> => {
    const client = new Client({ name: 'e2e', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(origin))
    const pod = await podOf(client)
    sessions.push({ client, pod })
    return pod
  }
  const modern = new ClientV2({ name: 'e2e', version: '2' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await modern.connect(new TransportV2(origin))
  try {
    // Which pod has a session is left to chance: at least four of them, and as many as it takes for both pods.
    await until('both pods have sessions', async () => (await open()) !== '' && sessions.length >= 4 && new Set(sessions.map(({ pod }) => pod)).size === 2)
    expect(await readyPods()).toEqual(expect.arrayContaining(sessions.map(({ pod }) => pod)))
    const pods = sessions.map(({ pod }) => pod)
    for (let round = 0; round < 3; round++) expect(await Promise.all(sessions.map(({ client }) => podOf(client)))).toEqual(pods)

    // That of the client without sessions, whose calls need another pod then.
    const deleted = await podOf(modern)
    const [ended, others] = [sessions.filter(({ pod }) => pod === deleted), sessions.filter(({ pod }) => pod !== deleted)]
    await kubectl('-n', NAMESPACE, 'delete', 'pod', deleted, '--wait=false')
    await Promise.all(ended.map(({ client }) => until('the session has ended', () => podOf(client).then(() => false, isLost))))
    expect(await Promise.all(others.map(({ client }) => podOf(client)))).toEqual(others.map(({ pod }) => pod))
    // Until the endpoints of the Service are updated, connections to the pod are refused.
    await until('another pod serves the client without sessions', () =>
      podOf(modern).then(
        (pod) => pod !== deleted,
        () => false,
      ),
    )
    await until('the pod is gone', async () => (await read('pod', deleted, NAMESPACE)) === undefined)
    expect(await open()).not.toBe(deleted)
    expect(await podOf(modern)).not.toBe(deleted)
    await until('another pod is ready', async () => (await readyPods()).length === 2, 300_000)
    expect(await Promise.all(others.map(({ client }) => podOf(client)))).toEqual(others.map(({ pod }) => pod))
  } finally {
    await Promise.all([modern, ...sessions.map(({ client }) => client)].map((client) => client.close()))
    await apply(NAMESPACE, parameters({ images: ['localhost'] }))
  }
  await until('one pod is left', async () => (await readyPods()).length === 1)
})

test('another image replaces the pods, and one that cannot be pulled is reported', async () => {
  const missing = 'localhost/missing:e2e'
  await apply(NAMESPACE, backend(everything, { ...bare, image: missing }, { ...bare, name: 'broken', image: missing }))
  const nameOf = async (part: string): Promise<string> => namesOf(await owned('deployments')).find((each) => each.includes(part)) ?? ''
  await until('all Deployments are there', async () => (await owned('deployments')).length === 3)
  const name = await nameOf('bare')
  await until('the image is replaced', async () => (await read('deployment', name, NAMESPACE))?.spec.template.spec.containers[0].image === missing)
  await until('the server is not ready', async () => (await condition('ServersReady')).reason === 'Pending')
  const { message } = await condition('ServersReady')
  expect(message).toContain('server of target broken is not ready: 0 of 1 pods are ready')
  expect(message).toContain(`kubectl -n ${NAMESPACE} describe pods -l app.kubernetes.io/name=${await nameOf('broken')}`)
  expect(message).not.toContain('everything')
  await until('the stuck rollout is reported', async () => (await condition('ServersReady')).message.includes('the rollout is stuck'), 300_000)
  // The pod of the last image serves on.
  expect(await call(1, 'bare_add', { a: 1, b: 1 })).toBe('2')
})

test('objects are deleted with the target, with the permission and with the backend', async () => {
  const isAbsent = async (kind: string, part: string): Promise<boolean> => !namesOf(await owned(kind)).some((name) => name.includes(part))
  const untilAbsent = (part: string): Promise<void> =>
    until(`no object of ${part}`, async () => {
      for (const kind of ['deployments', 'services', 'serviceaccounts']) if (!(await isAbsent(kind, part))) return false
      return true
    })
  await apply(NAMESPACE, backend(everything))
  await untilAbsent('bare')
  expect(await isAbsent('deployments', 'everything')).toBe(false)
  await apply(NAMESPACE, parameters({ images: [] }))
  await untilAbsent('everything')
  await apply(NAMESPACE, parameters({ images: ['localhost/mcp-servers'] }))
  await untilReady()
  await kubectl('-n', NAMESPACE, 'delete', 'proxybackend', 'tools')
  await untilAbsent('everything')
})
