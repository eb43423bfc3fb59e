import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { stringify } from 'yaml'
import { send, type ClientRequest, type ClientResponse } from '../../harness/client.ts'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { startEcho } from '../../harness/upstream/echo.ts'
import { makeGrpcClient } from '../../harness/grpc-client.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import {
  startAuthz,
  startDropping,
  startExtProc,
  startHanging,
  startMalformed,
  startNginxAuth,
  startRateLimit,
  startSilent,
  type Counterpart,
} from './counterparts.ts'

const limits = {
  domain: 'shop',
  descriptors: [
    { key: 'tenant', rate_limit: { unit: 'day', requests_per_unit: 3 } },
    { key: 'path', value: '/rare', rate_limit: { unit: 'day', requests_per_unit: 1 } },
  ],
}
const faults = { silent: startSilent, dropping: startDropping, malformed: startMalformed, hanging: startHanging }
type Fault = keyof typeof faults
const failureModes = ['FailClosed', 'FailOpen'] as const
/** Kinds of callout policies, and the status of their failures with FailClosed. */
const closedStatus = { auth: 403, http: 403, limit: 500, proc: 500 } as const
type Kind = keyof typeof closedStatus
const kinds = Object.keys(closedStatus) as Kind[]

const stops: (() => Promise<unknown>)[] = []
let port = 0

/** Routes with one policy each, for the hosts `<name>.test`. */
function routesOf(ports: Readonly<Record<string, number>>, upstream: number) {
  const ref = (name: string) => ({ address: `127.0.0.1:${ports[name] ?? 0}` })
  const buffered = { requestBodyMode: 'Buffered', responseBodyMode: 'Buffered' }
  const descriptors = [
    { entries: [{ name: 'tenant', expression: 'request.headers["x-tenant"]' }] },
    { entries: [{ name: 'path', expression: 'request.path' }] },
  ]
  const policies: Record<string, object> = {
    opa: { extAuth: { backendRef: ref('authz'), grpc: { contextExtensions: { shop: 'blue' } }, forwardBody: { maxSize: 100 } } },
    nginx: { extAuth: { backendRef: ref('nginx'), http: { allowedResponseHeaders: ['x-user', 'x-asked'] } } },
    'nginx-login': { extAuth: { backendRef: ref('nginx'), http: { path: '"/check"', redirect: '"/login?to=" + request.path' } } },
    limit: { rateLimit: { global: { backendRef: ref('ratelimit'), domain: 'shop', descriptors } } },
    proc: { extProc: { backendRef: ref('extproc') } },
    'proc-buffered': { extProc: { backendRef: ref('extproc'), processingOptions: { ...buffered, allowModeOverride: true } } },
    'proc-none': { extProc: { backendRef: ref('extproc'), processingOptions: { requestBodyMode: 'None', responseBodyMode: 'None' } } },
    'proc-timeout': { extProc: { backendRef: ref('extproc'), messageTimeout: '200ms' } },
    'proc-open': { extProc: { backendRef: ref('extproc'), failureMode: 'FailOpen' } },
  }
  for (const fault of Object.keys(faults))
    for (const failureMode of failureModes) {
      const host = `${fault}-${failureMode.toLowerCase()}`
      const own = (kind: Kind) => ref(`${kind}-${host}`)
      policies[`auth-${host}`] = { extAuth: { backendRef: own('auth'), grpc: {}, failureMode }, timeouts: { request: '3s' } }
      policies[`http-${host}`] = { extAuth: { backendRef: own('http'), http: {}, failureMode }, timeouts: { request: '3s' } }
      policies[`limit-${host}`] = { rateLimit: { global: { backendRef: own('limit'), domain: 'd', descriptors, failureMode } }, timeouts: { request: '3s' } }
      policies[`proc-${host}`] = { extProc: { backendRef: own('proc'), failureMode, messageTimeout: '500ms' }, timeouts: { request: '3s' } }
    }
  return Object.entries(policies).map(([name, section]) => ({
    name,
    hostnames: [`${name}.test`],
    policies: section,
    backends: [{ host: `127.0.0.1:${upstream}` }],
  }))
}

beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'callouts-'))
  stops.push(() => rm(directory, { recursive: true, force: true }))
  const keep = async (start: Promise<Counterpart>): Promise<number> => {
    const counterpart = await start
    stops.push(() => counterpart.stop())
    return counterpart.port
  }
  const echo = await startEcho({ name: 'echo' })
  stops.push(() => echo.close())
  const ports: Record<string, number> = {
    authz: await keep(startAuthz()),
    extproc: await keep(startExtProc()),
    ratelimit: await keep(startRateLimit(directory, limits)),
    nginx: await keep(startNginxAuth(directory)),
  }
  // Each case has its own server, because the health of a service is shared by all policies that call it.
  for (const [fault, start] of Object.entries(faults))
    for (const kind of kinds) for (const mode of failureModes) ports[`${kind}-${fault}-${mode.toLowerCase()}`] = await keep(start())
  port = await findFreePort()
  const file = join(directory, 'config.yaml')
  await writeFile(file, stringify({ binds: [{ port, listeners: [{ name: 'http', routes: routesOf(ports, echo.port) }] }] }))
  const dataplane = await startDataplane({ config: { file } })
  stops.push(() => dataplane.stop())
}, 400_000)

afterAll(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop()
})

const call = (host: string, request: Partial<ClientRequest> = {}): Promise<ClientResponse> => send({ port, host: `${host}.test`, ...request })

describe('OPA behind ext_authz', () => {
  test('allows an admin and changes the request', async () => {
    const response = await call('opa', { path: '/a?secret=1&x=2', headers: { 'x-user': 'anna', 'x-forged': 'yes' } })
    expect([response.status, response.headers['x-decided-by'], response.json().path]).toEqual([200, 'opa', '/a?x=2&role=admin'])
    expect([response.json().headers['x-role'], response.json().headers['x-forged']]).toEqual(['admin', undefined])
  })

  test.each<[string, Partial<ClientRequest>, number]>([
    ['allows a reader to read', { headers: { 'x-user': 'bert' } }, 200],
    ['denies a reader to write', { method: 'POST', headers: { 'x-user': 'bert' }, body: '{}' }, 403],
    ['denies a request without a user', {}, 403],
  ])('%s', async (_, request, status) => {
    const response = await call('opa', request)
    expect([response.status, response.headers['x-decided-by']]).toEqual([status, 'opa'])
    if (status === 403) expect(response.body).toBe('nobody I know')
  })

  test('receives the body over HTTP/1.1 and HTTP/2', async () => {
    for (const protocol of ['http1', 'http2'] as const) {
      const response = await call('opa', { protocol, method: 'POST', headers: { 'x-user': 'anna' }, body: '{"open":true}' })
      expect([response.status, response.json().body]).toEqual([200, '{"open":true}'])
    }
    expect((await call('opa', { method: 'POST', body: 'x'.repeat(101) })).status).toBe(413)
  })

  test('decides many concurrent requests', async () => {
    const statuses = await Promise.all(
      Array.from({ length: 50 }, async (_, nth) => (await call('opa', { headers: { 'x-user': nth % 2 === 0 ? 'anna' : 'nobody' } })).status),
    )
    expect(statuses).toEqual(Array.from({ length: 50 }, (_, nth) => (nth % 2 === 0 ? 200 : 403)))
  })
})

describe('nginx as an authorization server', () => {
  const authorization = `Basic ${Buffer.from('anna:open sesame').toString('base64')}`

  test('allows a request and adds the user', async () => {
    const { status, json } = await call('nginx', { path: '/a?b', headers: { authorization, 'x-user': 'forged' } }).then((response) => ({
      status: response.status,
      json: response.json(),
    }))
    expect([status, json.headers['x-user'], json.headers['x-asked']]).toEqual([200, 'anna', 'GET /a?b'])
  })

  test('rejects a request with its challenge', async () => {
    const response = await call('nginx')
    expect([response.status, response.headers['www-authenticate'], response.body.includes('401')]).toEqual([401, 'Basic realm="the shop"', true])
  })

  test('rejects a request, and the gateway redirects to the login', async () => {
    const response = await call('nginx-login', { path: '/a' })
    expect([response.status, response.headers['location'], response.body]).toEqual([302, '/login?to=/a', ''])
  })
})

describe("Envoy's rate limit service on Redis", () => {
  test('counts per tenant and returns the remaining hits', async () => {
    const numbers = (response: ClientResponse) => [response.status, response.headers['x-ratelimit-limit'], response.headers['x-ratelimit-remaining']]
    const of = async (tenant: string) => numbers(await call('limit', { headers: { 'x-tenant': tenant } }))
    expect(await of('blue')).toEqual([200, '3', '2'])
    expect(await of('blue')).toEqual([200, '3', '1'])
    expect(await of('blue')).toEqual([200, '3', '0'])
    expect(await of('blue')).toEqual([429, '3', '0'])
    expect(await of('green')).toEqual([200, '3', '2'])
  })

  test('limits requests by each of several counters, and only requests that have one', async () => {
    expect([(await call('limit', { path: '/rare' })).status, (await call('limit', { path: '/rare' })).status]).toEqual([200, 429])
    expect((await call('limit', { path: '/often' })).headers['x-ratelimit-limit']).toBeUndefined()
  })
})

describe('an ext_proc server in Go', () => {
  test.each(['proc', 'proc-buffered', 'proc-none'])('changes headers in both directions: %s', async (host) => {
    const response = await call(host, { headers: { 'x-do': 'header pseudo', 'x-secret': '1', 'x-list': 'first' } })
    const { headers, path, host: upstreamHost } = response.json()
    expect([headers['x-from-processor'], headers['x-secret'], path, upstreamHost]).toEqual([`GET ${host}.test`, undefined, '/moved', 'moved.example'])
    expect([headers['x-list'], response.headers['x-response-from-processor']]).toEqual(['second', 'status 200'])
  })

  test.each(['proc', 'proc-buffered'])('changes bodies: %s', async (host) => {
    const response = await call(host, { method: 'POST', headers: { 'x-do': 'upper' }, body: 'hello '.repeat(20_000) })
    expect(response.body).toContain('"NAME":"ECHO"')
    expect(response.body).toContain('"BODYBYTES":120000')
    expect(response.body).toContain('HELLO HELLO')
  })

  test.each(['proc', 'proc-buffered'])('clears bodies: %s', async (host) => {
    const response = await call(host, { method: 'POST', headers: { 'x-do': 'clear' }, body: 'hello' })
    expect([response.status, response.body]).toEqual([200, ''])
  })

  test.each(['proc', 'proc-buffered', 'proc-none'])('sends an immediate response: %s', async (host) => {
    const response = await call(host, { path: '/a', headers: { 'x-do': 'deny' } })
    expect([response.status, response.body, response.headers['x-denied-by']]).toEqual([403, 'not with /a', 'processor'])
    expect((await call(host, { headers: { 'x-do': 'deny-response' } })).status).toBe(451)
  })

  test.each(['proc', 'proc-buffered'])('sends an immediate response to a body: %s', async (host) => {
    const response = await call(host, { method: 'POST', headers: { 'x-do': 'deny-body' }, body: 'hello' })
    expect([response.status, response.body]).toEqual([422, 'the body is not wanted'])
  })

  test('does not receive the response body if it overrides the mode', async () => {
    const response = await call('proc-buffered', { headers: { 'x-do': 'upper skip-body' } })
    expect(response.json().name).toBe('echo')
  })

  test.each(['proc', 'proc-buffered', 'proc-none'])('processes gRPC calls with trailers: %s', async (host) => {
    const client = makeGrpcClient(`127.0.0.1:${port}`, { authority: `${host}.test` })
    try {
      const reply = await client.unary('hello', { 'x-do': 'header trailers' })
      expect([reply.message, reply.trailers.get('x-trailer-from-processor'), reply.trailers.get('x-trailer')]).toEqual(['hello', ['yes'], ['end']])
    } finally {
      client.close()
    }
  })

  test('fails closed, or open before it received a part of a body', async () => {
    const closed = await call('proc', { headers: { 'x-do': 'broken' } })
    expect([closed.status, closed.body]).toEqual([500, 'ext_proc failed: grpc-status 13'])
    expect((await call('proc-open', { headers: { 'x-do': 'broken' } })).status).toBe(200)
    expect((await call('proc-timeout', { headers: { 'x-do': 'hang' } })).body).toBe('ext_proc failed: timeout')
  })
})

describe('a faulty service', () => {
  const cases = (Object.keys(faults) as Fault[]).flatMap((fault) => kinds.map((kind) => [fault, kind] as const))

  test.each(cases)('(%s, called by %s) fails as configured and stops delaying requests', async (fault, kind) => {
    for (const mode of ['failclosed', 'failopen'] as const) {
      // gRPC callouts have no timeout except that of the request.
      const isUnlimited = fault === 'hanging' && (kind === 'auth' || kind === 'limit')
      const expected = isUnlimited ? [504] : mode === 'failopen' ? [200] : [closedStatus[kind]]
      const first = await Promise.all(Array.from({ length: 3 }, () => call(`${kind}-${fault}-${mode}`)))
      const second = await call(`${kind}-${fault}-${mode}`)
      expect([...new Set([...first, second].map(({ status }) => status))]).toEqual(expect.arrayContaining(isUnlimited && mode === 'failopen' ? [] : expected))
      // A connection attempt takes 2 s. Attempts are repeated with increasing backoff.
      await waitUntil('an immediate response', async () => {
        const startedAt = performance.now()
        const { status } = await call(`${kind}-${fault}-${mode}`)
        return status === (mode === 'failopen' ? 200 : closedStatus[kind]) && performance.now() - startedAt < 1800
      })
    }
  })
})
