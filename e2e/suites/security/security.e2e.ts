import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { GATEWAY_GROUP } from '#api/names.ts'
import { send, sendRaw, type ClientRequest } from '../../harness/client.ts'
import { waitUntil } from '../../harness/wait.ts'
import { startCanary, type Canary } from './canary.ts'
import { addAddresses, AMBIENT, forEach, startCluster, type Cluster } from './cluster.ts'
import { ADDRESS, backendRef, CREDENTIAL, hostOf, MARK, ownedByB, policyOn, PORT, routeTo, SECRET_NAME, serviceRef, victims, type Manifest } from './objects.ts'
import { attacker, grant, hosts, LOOP, references, type Row } from './rows.ts'

const NOT_PERMITTED = /PX1202|PX1353|RefNotPermitted/
/** Of one request of an attack; a rejected connection needs milliseconds. */
const TIMEOUT_MS = 5000
let cluster: Cluster
let tenantA: Canary
let tenantB: Canary
/** This machine: loopback, and the metadata service. */
let node: Canary
/** Objects that the API server refused: nothing can be reached by them. */
const refused = new Map<Row, string>()
const rows = [...references, ...hosts]
const accepted = (of: readonly Row[]): Row[] => of.filter((row) => !refused.has(row))

beforeAll(async () => {
  addAddresses()
  await nameHosts(ADDRESS.tenantB)
  tenantA = await startCanary('tenant-a', [[ADDRESS.tenantA, 80]])
  tenantB = await startCanary('tenant-b', [[ADDRESS.tenantB, 80]])
  const places = ['127.0.0.1', '127.8.8.8', '::1'].flatMap((address) => [1, 80, 443, LOOP].map((port) => [address, port] as const))
  node = await startCanary('node', [...places, [ADDRESS.metadata, 80]])
  cluster = await startCluster([...victims, ...attacker])
  await forEach(rows, async (row) => {
    for (const object of row.objects) {
      const reason = await cluster.apply(object)
      if (reason !== undefined) refused.set(row, `${object.kind}: ${reason}`)
    }
  })
  await untilReported(accepted(rows).flatMap(({ objects }) => objects))
})
afterAll(async () => {
  await cluster?.stop()
  for (const canary of [tenantA, tenantB, node]) canary?.close()
})

/** Writes the file of host names: `rebind.example` has this address. */
async function nameHosts(rebind: string): Promise<void> {
  const file = process.env['HOSTS_FILE']
  if (file === undefined) throw new Error('HOSTS_FILE is not set; run this through e2e/suites/security/run')
  await writeFile(file, `127.0.0.1 localhost\n${ADDRESS.tenantB} public.example\n${rebind} rebind.example\n`)
}

let barriers = 0
/** Waits until all objects of `tenant-b` have a status, and the data plane has a config that is newer. */
async function untilReported(objects: readonly Manifest[]): Promise<void> {
  const keys = objects.filter(({ kind }) => /Proxy|Route/.test(kind)).map(({ kind, metadata }) => `${kind}/${metadata.name}`)
  let missing = keys
  await waitUntil('statuses', async () => {
    const statuses = await cluster.statuses('tenant-b')
    missing = keys.filter((key) => !statuses.has(key))
    return missing.length === 0
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${missing.slice(0, 5).join()} have none\n${cluster.logs().slice(-3000)}`, { cause: error })
  })
  const name = `barrier-${barriers++}`
  await cluster.apply(routeTo(name, serviceRef('own')))
  await waitUntil(name, async () => (await send({ port: PORT.http, host: hostOf(name) })).status === 200)
}

async function create(...objects: readonly Manifest[]): Promise<void> {
  for (const object of objects) expect(await cluster.apply(object)).toBeUndefined()
}

interface Outcome {
  /** 0: the connection was cut, or there was no response in time. */
  readonly statuses: readonly number[]
  readonly texts: readonly string[]
}
const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const chat = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hello' }] })
const initialize = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
})
const requests: readonly Partial<ClientRequest>[] = [
  { path: '/config_dump', headers: { authorization: 'Bearer user', cookie: 'a=b' } },
  { path: '/v1/chat/completions', headers: json, body: chat },
  { path: '/mcp', headers: json, body: initialize },
]

/** Uses a row as its clients do. */
async function attack({ name, via }: Row): Promise<Outcome> {
  if (via === 'tls' || (typeof via === 'object' && 'tcp' in via)) {
    const connected =
      via === 'tls'
        ? sendRaw(PORT.tls, '', { tls: { ca: '', sni: hostOf(name) } })
        : sendRaw(via.tcp, 'GET /config_dump HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    const text = await connected.catch(() => '')
    return { statuses: [Number(/^HTTP\S+ (\d+)/.exec(text)?.[1] ?? 0)], texts: [text] }
  }
  const host = via?.host ?? hostOf(name)
  const responses = await Promise.all(requests.map((request) => send({ port: PORT.http, host, timeoutMs: TIMEOUT_MS, ...request }).catch(() => undefined)))
  return {
    statuses: responses.map((response) => response?.status ?? 0),
    texts: responses.flatMap((response) => (response ? [JSON.stringify(response.headers) + response.body] : [])),
  }
}

/** Uses all rows; returns titles of those by which something was reached, with the statuses. */
async function attackAll(of: readonly Row[], isReached: (outcome: Outcome) => boolean): Promise<string[]> {
  const reached: string[] = []
  await forEach(of, async (row) => {
    const outcome = await attack(row)
    if (isReached(outcome)) reached.push(`${row.title}: ${outcome.statuses.join()}`)
  })
  return reached
}
const isOfA = ({ texts }: Outcome): boolean => texts.some((text) => text.includes(MARK) || /x-server"?: ?"?tenant-a/.test(text))
const statusOf = (statuses: ReadonlyMap<string, string>, { objects }: Row): string =>
  objects.map(({ kind, metadata }) => statuses.get(`${kind}/${metadata.name}`) ?? '').join('\n')
const isNotPermitted = (statuses: ReadonlyMap<string, string>) => (row: Row) => NOT_PERMITTED.test(statusOf(statuses, row))

async function expectNothingOfA(): Promise<void> {
  const before = tenantA.hits.length
  expect(await attackAll(references, isOfA)).toEqual([])
  expect(tenantA.hits.slice(before)).toEqual([])
  const statuses = await cluster.statuses('tenant-b')
  expect(references.filter((row) => !isNotPermitted(statuses)(row)).map(({ title }) => title)).toEqual([])
}

test('the API server accepts the objects of each reference field', () => {
  expect(references.filter((row) => refused.has(row)).map((row) => `${row.title}: ${refused.get(row)}`)).toEqual([])
})

test('no field reaches tenant-a without a ReferenceGrant, and the status says so', expectNothingOfA)

test('no field and no client reaches the machine, its metadata service or the ports of the gateway', async () => {
  const isManagement = ({ texts }: Outcome): boolean => texts.some((text) => /proxy_build_info|# TYPE|"listeners"|x-server"?: ?"?node/.test(text))
  expect(await attackAll(accepted(hosts), isManagement)).toEqual([])
  expect(node.hits).toEqual([])
  // Objects that the API server refuses name the field.
  const unnamed = hosts.filter((row) => refused.has(row) && !/host|url|endpoint|address|externalName|IP/i.test(refused.get(row) ?? ''))
  expect(unnamed.map((row) => `${row.title}: ${refused.get(row)}`)).toEqual([])
})

test('the admin port needs the token of the Secret that the operator made', async () => {
  const ask = (headers: Record<string, string>) => fetch('http://127.0.0.1:15000/config_dump', { headers })
  expect((await ask({})).status).toBe(401)
  expect((await ask({ authorization: `Bearer ${'0'.repeat(64)}` })).status).toBe(401)
  expect((await ask({ authorization: `Bearer ${cluster.adminToken}` })).status).toBe(200)
})

test('with a ReferenceGrant the same fields reach tenant-a with its credential, until it is deleted', async () => {
  await cluster.apply(grant)
  await waitUntil('granted', async () => !references.some(isNotPermitted(await cluster.statuses('tenant-b'))))
  await untilReported([])
  await waitUntil('the operator fetches key sets', () => tenantA.hits.some(({ text }) => text.startsWith('GET /x ')))
  await attackAll(references, isOfA)
  // One after another, to tell which row a connection is of. Other fields need a service that speaks their protocol.
  for (const row of references.filter(({ title }) => /^(?:HTTP|TLS|TCP)Route|extProc|plugins|spec\.backend\.tunnel|selector/.test(title)))
    await waitUntil(row.title, async () => {
      const before = tenantA.hits.length
      return isOfA(await attack(row)) || tenantA.hits.length > before
    })
  expect(tenantA.hits.some(({ text }) => text.includes(CREDENTIAL))).toBe(true)
  await cluster.remove(grant)
  await waitUntil('withdrawn', async () => references.every(isNotPermitted(await cluster.statuses('tenant-b'))))
  await untilReported([])
  await expectNothingOfA()
})

test('a host name that turns to loopback is rejected from then on', async () => {
  const row = 'rebind'
  await create(ownedByB('ProxyBackend', row, { static: { host: 'rebind.example', port: 80 } }), routeTo(row, backendRef(row)))
  const ask = async (): Promise<number> => (await send({ port: PORT.http, host: hostOf(row), timeoutMs: TIMEOUT_MS })).status
  await waitUntil('the name is that of a host of tenant-b', async () => (await ask()) === 200)
  for (const address of ['127.0.0.1', ADDRESS.metadata, '::1']) {
    await nameHosts(address)
    await waitUntil(`${address} is rejected`, async () => (await ask()) === 503)
    await nameHosts(ADDRESS.tenantB)
    await waitUntil('the name is that of a host of tenant-b again', async () => (await ask()) === 200)
  }
  expect(node.hits).toEqual([])
})

test('a route that leads back to the gateway ends, and others are served', async () => {
  const row = 'back'
  // A pod dials the gateway by its own address or by that of its Service.
  await create(
    ownedByB('ProxyBackend', row, { static: { host: ADDRESS.tenantB, port: PORT.http } }),
    routeTo(row, backendRef(row), { filters: [{ type: 'RequestMirror', requestMirror: { backendRef: backendRef(row) } }] }),
  )
  await untilReported([routeTo(row, backendRef(row))])
  const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await send({ port: PORT.http, host: hostOf(row), timeoutMs: 30_000 })).status))
  expect(new Set(statuses)).toEqual(new Set([508]))
  expect((await send({ port: PORT.http, host: 'shop.a.example' })).status).toBe(200)
})

test('a client reaches nothing but routes with the form of its request', async () => {
  const targets = ['127.0.0.1:15000', 'localhost:15020', `${ADDRESS.tenantB}:15021`, `${ADDRESS.metadata}:80`, `127.0.0.1:${LOOP}`]
  for (const target of targets)
    for (const head of [
      `CONNECT ${target} HTTP/1.1\r\nhost: ${target}`,
      `GET http://${target}/config_dump HTTP/1.1\r\nhost: shop.a.example`,
      `GET /config_dump HTTP/1.1\r\nhost: ${target}`,
      `GET /metrics HTTP/1.1\r\nhost: shop.a.example@${target}`,
      `OPTIONS * HTTP/1.1\r\nhost: ${target}`,
    ]) {
      const text = await sendRaw(PORT.http, `${head}\r\nconnection: close\r\n\r\n`)
      expect({ head, status: /^HTTP\/1.1 (\d)/.exec(text)?.[1], text: /# TYPE|"listeners"|x-server: node/.exec(text)?.[0] }).toEqual({
        head,
        status: '4',
        text: undefined,
      })
    }
  expect(node.hits).toEqual([])
})

const setHeader = { traffic: { headerModifiers: { response: { set: [{ name: 'x-hijacked', value: 'yes' }] } } } }
test('tenant-b changes nothing for clients of tenant-a', async () => {
  const hijacked = (name: string, hostname: string, sectionName: string) =>
    ownedByB('HTTPRoute', name, {
      parentRefs: [{ name: 'gateway', namespace: 'infra', sectionName }],
      hostnames: [hostname],
      rules: [{ backendRefs: [serviceRef('own')] }],
    })
  const policy = (name: string, kind: string, target: string) =>
    ownedByB('ProxyPolicy', name, { targetRefs: [{ group: GATEWAY_GROUP, kind, name: target }], ...setHeader })
  const objects = [
    hijacked('hijack-same', 'shop.a.example', 'http'),
    hijacked('hijack-only', 'only.a.example', 'only-a'),
    policy('hijack-route', 'HTTPRoute', 'shop'),
    policy('hijack-gateway', 'Gateway', 'gateway'),
  ]
  await create(...objects)
  await untilReported(objects)
  for (const host of ['shop.a.example', 'only.a.example']) {
    const { status, headers } = await send({ port: PORT.http, host })
    expect({ host, status, server: headers['x-server'], hijacked: headers['x-hijacked'] }).toEqual({
      host,
      status: 200,
      server: 'tenant-a',
      hijacked: undefined,
    })
  }
  const statuses = await cluster.statuses('tenant-b')
  expect(statuses.get('HTTPRoute/hijack-only')).toContain('NotAllowedByListeners')
  for (const name of ['hijack-route', 'hijack-gateway']) expect(statuses.get(`ProxyPolicy/${name}`)).toContain('not found [PX1315]')
})

test('the identity of the pod is not sent to a host of tenant-b', async () => {
  const objects = Object.entries({ cloudA: {}, cloudC: {}, cloudB: { managedIdentity: { clientId: 'x', objectId: 'x', resourceId: 'x' } } }).map(
    ([name, auth]) => {
      const row = `identity-${name.toLowerCase()}`
      const backend = ownedByB('ProxyBackend', row, { static: { host: ADDRESS.tenantB, port: 80 }, policies: { auth: { [name]: auth } } })
      return { host: hostOf(row), objects: [backend, routeTo(row, backendRef(row))] }
    },
  )
  const all = objects.flatMap((each) => each.objects)
  await create(...all)
  await untilReported(all)
  const before = tenantB.hits.length
  for (const { host } of objects) {
    const { status, body } = await send({ port: PORT.http, host, timeoutMs: 30_000 })
    expect({ host, status, body }).toEqual({ host, status: 500, body: expect.stringContaining('backend authentication failed') })
  }
  expect(tenantB.hits.slice(before)).toEqual([])
})

test('a CEL expression of tenant-b sees nothing of tenant-a, the operator or the process', async () => {
  const names = ['request', 'source', 'backend', 'env', 'metadata', 'secrets', 'jwt', 'apiKey', 'config', 'process']
  const objects = names.flatMap((name) => {
    const row = `cel-${name.toLowerCase()}`
    const set = [{ name: 'x-cel', value: `string(toJson(${name}))` }]
    return [policyOn(row, { traffic: { transformation: { response: { set } } } }), routeTo(row, serviceRef('own'))]
  })
  await create(...objects)
  await untilReported(objects)
  const headers = await Promise.all(names.map(async (name) => (await send({ port: PORT.http, host: hostOf(`cel-${name.toLowerCase()}`) })).headers))
  // Expressions are evaluated.
  expect(headers[0]?.['x-cel']).toContain('cel-request')
  for (const secret of [CREDENTIAL, AMBIENT, SECRET_NAME, 'tenant-a', ADDRESS.tenantA]) expect(JSON.stringify(headers)).not.toContain(secret)
})

test('statuses of tenant-b and requests to its hosts contain nothing of tenant-a, the pod or the machine', async () => {
  const statuses = [...(await cluster.statuses('tenant-b'))].map((entry) => entry.join(' '))
  for (const secret of [CREDENTIAL, Buffer.from(CREDENTIAL).toString('base64'), SECRET_NAME, ADDRESS.tenantA, AMBIENT, cluster.adminToken])
    expect(statuses.filter((text) => text.includes(secret))).toEqual([])
  for (const secret of [CREDENTIAL, AMBIENT, cluster.adminToken]) expect(tenantB.hits.filter(({ text }) => text.includes(secret))).toEqual([])
  expect(node.hits).toEqual([])
  // tenant-b could be reached all the time.
  expect(tenantB.hits.length).toBeGreaterThan(100)
})
