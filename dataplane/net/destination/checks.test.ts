import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { HealthCheck as Section } from '#gen/config/types.ts'
import { allocateCells, SharedCells } from '../../runtime/shared-cells.ts'
import { serveSockets } from '../../testing/socket-server.ts'
import { encodeFrame } from '../callout/frames.ts'
import { destinationTo as destinationWith } from '../callout/testing.ts'
import type { EvictionEvent } from '../upstream/balancer/balancer.ts'
import { SharedHealthTable } from '../upstream/balancer/shared-health.ts'
import type { Destination } from '../upstream/destination.ts'
import { HealthChecks } from './checks.ts'
import { compileHealth } from './health.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

interface TestServer {
  readonly port: number
  readonly requests: { readonly target: string; readonly host: string | undefined }[]
  connections: number
  respond: (request: IncomingMessage, response: ServerResponse) => unknown
}

async function serve(respond: TestServer['respond'] = (_, response) => response.end('all is well')): Promise<TestServer> {
  const server = createServer((request, response) => {
    started.requests.push({ target: request.url ?? '', host: request.headers.host })
    started.respond(request, response)
  })
  server.on('connection', () => started.connections++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const started: TestServer = { port: (server.address() as AddressInfo).port, requests: [], connections: 0, respond }
  closers.push(() => (server.closeAllConnections(), server.close()))
  return started
}

/** Serves gRPC health v1; the names of services that it was asked for are in `asked`. */
async function serveGrpc(message: number[], grpcStatus = '0') {
  const asked: string[] = []
  const server = createHttp2Server()
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => {
      const body = Buffer.concat(chunks).subarray(5)
      asked.push(`${headers[':path']} ${body.subarray(body.length < 2 ? 0 : body.length > 129 ? 3 : 2).toString()}`)
      stream.respond(
        { ':status': 200, 'content-type': 'application/grpc', ...(grpcStatus !== '0' && { 'grpc-status': grpcStatus }) },
        { waitForTrailers: true },
      )
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': grpcStatus }))
      stream.end(encodeFrame(Buffer.from(message)))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => server.close())
  return { port: (server.address() as AddressInfo).port, asked }
}

const fast = { interval: '5ms', jitter: '0s', timeout: '2s' } as const
const destinationTo: typeof destinationWith = (ports, settings, change, options) =>
  destinationWith(ports, settings, change, { random: Math.random, ...options })
const checking = (section: Section) => ({ health: compileHealth({ active: { ...fast, ...section } }) })

/** Watches destinations; `events` are reports. */
function watch(destinations: readonly Destination[], table?: SharedHealthTable) {
  const events: (Pick<EvictionEvent, 'kind' | 'endpoint' | 'error'> & { readonly backend: string })[] = []
  const checks = new HealthChecks({
    table,
    onChange: (backend, { kind, endpoint, error }) => void events.push({ backend, kind, endpoint, ...(error !== undefined && { error }) }),
  })
  for (const destination of destinations) checks.watch(destination)
  closers.push(() => {
    for (const destination of destinations) {
      checks.forget(destination)
      destination.close()
    }
  })
  return { checks, events }
}

async function until(isTrue: () => boolean): Promise<void> {
  for (const startedAtMs = performance.now(); !isTrue();) {
    if (performance.now() - startedAtMs > 20_000) throw new Error('the condition did not become true')
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

const picks = (destination: Destination): number[] => {
  const caller = { request: { headers: { get: () => undefined } }, connection: { tls: undefined } } as never
  return [...new Set(Array.from({ length: 50 }, () => destination.pick(caller)?.port ?? 0))].toSorted((a, b) => a - b)
}

describe('a check', () => {
  test('takes an endpoint out after failures in a row, and back in after passes, with one report each', async () => {
    const [bad, good] = [await serve(), await serve()]
    const destination = destinationTo([bad.port, good.port], checking({ http: { path: '/healthz?a=b' }, unhealthyThreshold: 2, healthyThreshold: 2 }))
    const { events } = watch([destination])
    await until(() => bad.requests.length > 1 && good.requests.length > 1)
    expect(bad.requests[0]).toEqual({ target: '/healthz?a=b', host: `127.0.0.1:${bad.port}` })
    bad.respond = (_, response) => response.writeHead(503).end()
    await until(() => events.length === 1)
    expect(picks(destination)).toEqual([good.port])
    expect(destination.endpoints.map(({ check }) => check?.problem)).toEqual(['status 503', undefined])
    const failed = bad.requests.length
    bad.respond = (_, response) => response.end()
    await until(() => events.length === 2)
    expect(bad.requests.length).toBeGreaterThanOrEqual(failed + 2)
    expect(new Set(picks(destination))).toEqual(new Set([bad.port, good.port]))
    const report = { backend: 'test/service', endpoint: `127.0.0.1:${bad.port}` }
    expect(events).toEqual([
      { ...report, kind: 'down', error: 'status 503' },
      { ...report, kind: 'up' },
    ])
  })

  test.each<[string, Section, TestServer['respond'], string | undefined]>([
    ['another status than 200', { http: { path: '/' } }, (_, response) => response.writeHead(204).end(), 'status 204'],
    ['a redirect, which it does not follow', { http: { path: '/' } }, (_, response) => response.writeHead(302, { location: '/ok' }).end(), 'status 302'],
    ['an expected status', { http: { path: '/', expectedStatuses: [200, 204] } }, (_, response) => response.writeHead(204).end(), undefined],
    ['the expected text', { http: { path: '/', expectedBody: 'is well' } }, (_, response) => response.end('all is well'), undefined],
    ['a body without it', { http: { path: '/', expectedBody: 'is well' } }, (_, response) => response.end('all is bad'), 'the body lacks the expected text'],
    ['a body over 64 KiB', { http: { path: '/' } }, (_, response) => response.end('a'.repeat(65_537)), 'body exceeds 65536 bytes'],
    ['a body that does not end', { http: { path: '/' }, timeout: '20ms' }, (_, response) => response.write('a'), 'test/service took longer than 20 ms'],
    ['a response that does not come', { http: { path: '/' }, timeout: '20ms' }, () => undefined, 'test/service took longer than 20 ms'],
    [
      'its own host',
      { http: { path: '/', hostname: 'a.example' } },
      ({ headers }, response) => response.writeHead(headers.host === 'a.example' ? 200 : 404).end(),
      undefined,
    ],
    ['an open port', { tcp: {} }, () => undefined, undefined],
  ])('by %s', async (_, section, respond, problem) => {
    const [server, other] = [await serve(respond), await serve(respond)]
    const destination = destinationTo([server.port, other.port], checking({ ...section, unhealthyThreshold: 1 }))
    const { events } = watch([destination])
    if (problem !== undefined) await until(() => events.length === 2)
    else await until(() => (section.tcp === undefined ? server.requests.length : server.connections) > 3)
    expect([...new Set(events.map(({ kind, error }) => `${kind} ${error}`))]).toEqual(problem === undefined ? [] : [`down ${problem}`])
    // All endpoints are out: all are used.
    expect(new Set(picks(destination))).toEqual(new Set([server.port, other.port]))
  })

  test.each([['http', { http: { path: '/' } }] as const, ['tcp', { tcp: {} }] as const, ['grpc', { grpc: {} }] as const])(
    'by %s fails at a closed port, and at an address that no connection may go to',
    async (_, section) => {
      const closed = await serveSockets(() => undefined)
      await closed.close()
      const endpoints = [
        { address: '127.0.0.1', port: closed.port },
        { address: '169.254.169.254', port: 80 },
      ]
      const destination = destinationTo([], checking({ ...section, unhealthyThreshold: 1 }), { endpoints })
      const { events } = watch([destination])
      await until(() => events.length === 2)
      expect(events.map(({ endpoint, error }) => `${endpoint} ${error}`).sort()).toEqual([
        expect.stringMatching(/^127\.0\.0\.1:\d+ .*ECONNREFUSED/),
        expect.stringMatching(/^169\.254\.169\.254:80 .*169\.254\.169\.254/),
      ])
    },
  )

  test.each<[string, number[], string, string | undefined]>([
    ['SERVING', [8, 1], '0', undefined],
    ['NOT_SERVING', [8, 2], '0', 'not serving'],
    ['UNKNOWN', [], '0', 'not serving'],
    ['NOT_FOUND', [], '5', 'grpc-status 5'],
  ])('by gRPC health with the status %s', async (_, message, grpcStatus, problem) => {
    const service = 'a'.repeat(200)
    const { port, asked } = await serveGrpc(message, grpcStatus)
    const destination = destinationTo(port, checking({ grpc: { service }, unhealthyThreshold: 1 }))
    const { events } = watch([destination])
    await until(() => asked.length > 2 && (problem === undefined || events.length > 0))
    expect(asked[0]).toBe(`/grpc.health.v1.Health/Check ${service}`)
    expect(events.map(({ error }) => error)).toEqual(problem === undefined ? [] : [problem])
  })

  test('of an endpoint is made once for all destinations that would have the same result, until the last of them is gone', async () => {
    const server = await serve((_, response) => response.writeHead(500).end())
    const settings = checking({ http: { path: '/' }, interval: '200ms', unhealthyThreshold: 1 })
    const [one, two] = [destinationTo(server.port, settings), destinationTo(server.port, settings)]
    const { checks, events } = watch([one, two])
    await until(() => events.length === 1)
    expect([server.requests.length, one.isDown, two.isDown]).toEqual([1, true, true])
    checks.forget(one)
    expect([one.isDown, two.isDown]).toEqual([false, true])
    checks.forget(two)
    expect(events.map(({ kind }) => kind)).toEqual(['down', 'unchecked'])
    const made = server.requests.length
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(server.requests.length).toBe(made)
  })

  test('follows the endpoints of its destination', async () => {
    const [gone, kept, added] = [await serve(), await serve(), await serve()]
    const settings = checking({ http: { path: '/' } })
    const destination = destinationTo([gone.port, kept.port], settings)
    const { checks } = watch([destination])
    await until(() => gone.requests.length > 0 && kept.requests.length > 0)
    const ports = [kept.port, added.port]
    const { settings: same } = destination
    destination.update({
      endpoints: ports.map((port) => ({ address: '127.0.0.1', port })),
      appProtocol: undefined,
      settings: same,
      hostname: undefined,
      isHostRewritten: true,
      isDynamic: false,
      error: undefined,
    })
    checks.watch(destination)
    await until(() => added.requests.length > 1)
    const made = gone.requests.length
    await until(() => added.requests.length > 4)
    expect(gone.requests.length - made).toBeLessThanOrEqual(1)
  })

  test('does not count for outlier detection', async () => {
    const server = await serve((_, response) => response.writeHead(500).end())
    const destination = destinationTo(server.port, { health: compileHealth({ eviction: {}, active: { ...fast, http: { path: '/' } } }) })
    const { events } = watch([destination])
    await until(() => events.length === 1)
    expect(destination.endpoints[0]).toMatchObject({ health: 1, failures: 0, evicted: undefined })
  })
})

describe('with several workers', () => {
  test('one of them checks, all of them see the result, and another one goes on if it stops', async () => {
    const [bad, good] = [await serve((_, response) => response.writeHead(500).end()), await serve()]
    const memory = allocateCells(16)
    const epoch = SharedHealthTable.allocateEpoch()
    const settings = checking({ http: { path: '/' }, interval: '20ms', unhealthyThreshold: 2 })
    const workers = Array.from({ length: 3 }, () => {
      const table = new SharedHealthTable(new SharedCells(memory), epoch)
      const destination = destinationTo([bad.port, good.port], settings, {}, { shared: table })
      return { destination, ...watch([destination], table) }
    })
    const events = () => workers.flatMap((worker) => worker.events.map(({ kind }) => kind))
    await until(() => events().length > 0)
    expect(bad.requests.length).toBe(2)
    expect(workers.map(({ destination }) => picks(destination))).toEqual([[good.port], [good.port], [good.port]])
    const checker = workers.find((worker) => worker.events.length > 0)
    checker?.checks.forget(checker.destination)
    await until(() => events().length === 3)
    expect(events().sort()).toEqual(['down', 'down', 'unchecked'])
    bad.respond = (_, response) => response.end()
    const others = workers.filter((worker) => worker !== checker)
    await until(() => others.every(({ destination }) => picks(destination).length === 2))
  })
})
