import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import { ServerCredentials } from '@grpc/grpc-js'
import { fc } from '#api/property-testing.ts'
import { createConfigStore, type ConfigStore } from '../../dataplane/config/store.ts'
import { startPortForwarder, type PortForwarder } from '../../dataplane/testing/port-forwarder.ts'
import { startConfigStream, type ConfigStream, type ConfigStreamEvent, type ConfigStreamOptions } from '../../dataplane/config/stream/stream.ts'
import { makeAuthority, makeCertificate } from '../../e2e/harness/certificates.ts'
import { createEncoder, type ServedMessage } from './encode.ts'
import type { Nack } from './nack.ts'
import { createConfigServer, type ConfigServer, type ConfigServerOptions } from './server.ts'
import { until } from '../../e2e/harness/wait.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function serve(options: ConfigServerOptions = {}): Promise<{ server: ConfigServer; port: number; address: string }> {
  const server = createConfigServer({ debounce: { quietMs: 1, maxMs: 10 }, ...options })
  closers.push(() => server.close())
  const port = await server.listen('127.0.0.1:0')
  return { server, port, address: `127.0.0.1:${port}` }
}

/** An address that servers can take over from each other. */
async function serveBehindForwarder(): Promise<{ server: ConfigServer; forwarder: PortForwarder; address: string }> {
  const { server, port } = await serve()
  const forwarder = await startPortForwarder(port)
  closers.push(() => forwarder.close())
  return { server, forwarder, address: `127.0.0.1:${forwarder.port}` }
}

interface Follower {
  store: ConfigStore
  stream: ConfigStream
  events: ConfigStreamEvent[]
  /** Messages received so far: updates and removals. */
  received(): number
}

function follow(address: string, options: Partial<ConfigStreamOptions> = {}): Follower {
  const store = options.store ?? createConfigStore()
  const events: ConfigStreamEvent[] = []
  const stream = startConfigStream({
    address: address.includes('//') ? address : `http://${address}`,
    node: { namespace: 'ns', gateway: 'gw' },
    store,
    onEvent: (event) => events.push(event),
    ...options,
  })
  closers.push(() => stream.close())
  const received = (): number => events.reduce((sum, event) => sum + (event.type === 'applied' ? event.updated + event.removed : 0), 0)
  return { store, stream, events, received }
}

const route = (name: string, path = '/'): ServedMessage => ({
  kind: 'route',
  key: `ns/${name}.00`,
  message: {
    key: `ns/${name}.00`,
    listeners: ['ns/gw.http'],
    route: { kind: 'HTTPRoute', namespace: 'ns', name, ruleIndex: 0 },
    matches: [{ path: { type: 'PathPrefix', value: path } }],
    backends: [{ ref: { service: 'ns/web', port: 80 }, weight: 1 }],
  },
})
const secret = (name: string): ServedMessage => ({ kind: 'secret', key: `ns/${name}`, message: { key: `ns/${name}`, type: 'ca', certificate: 'pem' } })
const service = (name: string, port = 80): ServedMessage => ({
  kind: 'service',
  key: `ns/${name}`,
  message: { key: `ns/${name}`, ports: [{ port, endpoints: [] }] },
})
const gateways = (...messages: ServedMessage[]): { gateways: Map<string, ServedMessage[]> } => ({ gateways: new Map([['ns/gw', messages]]) })

describe('config stream from operator to data plane', () => {
  test('transfers the whole config, and initialises the store once both types arrived', async () => {
    const { server, address } = await serve()
    server.publish(gateways(route('a'), secret('web'), service('web')))
    const { store } = follow(address)
    expect(store.pending()).toEqual(['config stream: resources', 'config stream: addresses'])
    await until(() => store.isInitialised())
    const { routes, secrets, services } = store.snapshot()
    expect([...routes.keys(), ...secrets.keys(), ...services.keys()]).toEqual(['ns/a.00', 'ns/web', 'ns/web'])
  })

  test('sends one message for one edit, and keeps the identity of unchanged objects', async () => {
    const { server, address } = await serve()
    const all = [route('a'), route('b'), service('web')]
    server.publish(gateways(...all))
    const { store, received } = follow(address)
    await until(() => store.isInitialised())
    const before = store.snapshot()
    const versions: string[][] = []
    store.subscribe((_, changes) => versions.push([...changes].flatMap(([kind, keys]) => [...keys].map((key) => `${kind} ${key}`))))
    server.publish(gateways(route('a'), route('b', '/edited'), service('web')))
    await until(() => versions.length > 0)
    const after = store.snapshot()
    expect(versions).toEqual([['route ns/b.00']])
    expect(received()).toBe(4)
    expect(after.routes.get('ns/b.00')?.matches?.[0]?.path?.value).toBe('/edited')
    expect(after.routes.get('ns/a.00')).toBe(before.routes.get('ns/a.00'))
    expect(after.services).toBe(before.services)
    expect(before.routes.get('ns/b.00')?.matches?.[0]?.path?.value).toBe('/')
  })

  test('removes resources that are no longer served, and all of them with their Gateway', async () => {
    const { server, address } = await serve()
    server.publish(gateways(route('a'), route('b'), service('web')))
    const { store } = follow(address)
    await until(() => store.isInitialised())
    server.publish(gateways(route('a'), service('web')))
    await until(() => store.snapshot().routes.size === 1)
    server.publish({ gateways: new Map() })
    await until(() => store.snapshot().routes.size === 0)
    await until(() => store.snapshot().services.size === 0)
    expect([server.stats().streams, store.isInitialised()]).toEqual([1, true])
  })

  test('reconnects to a restarted server with the versions it holds, receives only changes, and keeps the last valid config meanwhile', async () => {
    const first = await serveBehindForwarder()
    first.server.publish(gateways(route('same'), route('edited'), route('removed'), service('web')))
    const { store, events, received } = follow(first.address)
    await until(() => store.isInitialised())
    const before = store.snapshot()
    first.forwarder.to = undefined
    await first.server.close()
    await until(() => events.some((event) => event.type === 'disconnected'))
    expect(store.snapshot()).toBe(before)
    expect(store.isInitialised()).toBe(true)

    const known = received()
    const second = await serve()
    second.server.publish(gateways(route('same'), route('edited', '/new'), route('added'), service('web')))
    first.forwarder.to = second.port
    await until(() => store.snapshot().routes.has('ns/added.00'))
    expect([...store.snapshot().routes.keys()].sort()).toEqual(['ns/added.00', 'ns/edited.00', 'ns/same.00'])
    expect(received() - known).toBe(3)
    expect(store.snapshot().routes.get('ns/same.00')).toBe(before.routes.get('ns/same.00'))
    expect(events.filter((event) => event.type === 'disconnected').every((event) => event.retryMs <= 15_000)).toBe(true)
  })

  test('is rejected until the first config is published', async () => {
    const { server, address } = await serve()
    const { store, events } = follow(address)
    await until(() => events.some((event) => event.type === 'disconnected'))
    expect(events.find((event) => event.type === 'disconnected')).toMatchObject({ cause: 'UNAVAILABLE: the config is not complete yet' })
    server.publish(gateways(service('web')))
    await until(() => store.isInitialised())
    expect(store.snapshot().services.size).toBe(1)
  })

  test('nacks one invalid resource by path, applies the others and keeps its last valid version', async () => {
    const nacks: Nack[] = []
    const { server, address } = await serve({ onNack: (nack) => nacks.push(nack) })
    server.publish(gateways(route('a'), route('b')))
    const { store, events } = follow(address)
    await until(() => store.isInitialised())
    const bad = { ...route('a'), message: { ...route('a').message, matches: [{ path: { type: 'Glob', value: '/*' } }] } }
    server.publish(gateways(bad, route('b', '/good'), route('c')))
    await until(() => nacks.length > 0)
    const error = 'matches[0].path.type: must be one of Exact, PathPrefix, RegularExpression, is "Glob"'
    expect(nacks).toMatchObject([{ role: 'ns~gw', resources: [{ key: 'route/ns/a.00', error }] }])
    expect(JSON.parse(nacks[0]?.message ?? '')).toEqual([{ key: 'route/ns/a.00', error }])
    expect(server.stats().nacks).toBe(1)
    expect(events.filter((event) => event.type === 'nacked')).toHaveLength(1)
    const { routes } = store.snapshot()
    expect([...routes.keys()]).toEqual(['ns/a.00', 'ns/b.00', 'ns/c.00'])
    expect(routes.get('ns/a.00')?.matches?.[0]?.path?.type).toBe('PathPrefix')
    expect(routes.get('ns/b.00')?.matches?.[0]?.path?.value).toBe('/good')
    // The repaired resource is sent, although the refused one was never held.
    server.publish(gateways(route('a', '/repaired'), route('b', '/good'), route('c')))
    await until(() => store.snapshot().routes.get('ns/a.00')?.matches?.[0]?.path?.value === '/repaired')
    expect(nacks).toHaveLength(1)
  })

  test('is not initialised by a response without a valid resource', async () => {
    const nacks: Nack[] = []
    const { server, address } = await serve({ onNack: (nack) => nacks.push(nack) })
    server.publish(gateways({ kind: 'bind', key: 'x', message: { key: 'x', port: 0 } }))
    const { store } = follow(address)
    await until(() => nacks.length > 0 && store.pending().length < 2)
    expect(store.pending()).toEqual(['config stream: resources'])
    expect(nacks[0]?.resources).toEqual([{ key: 'bind/x', error: 'port: must be >= 1, is 0' }])
  })

  test('nacks a resource that fails the check of the caller', async () => {
    const nacks: Nack[] = []
    const { server, address } = await serve({ onNack: (nack) => nacks.push(nack) })
    server.publish(gateways(route('a'), secret('broken')))
    const { store } = follow(address, { check: ({ kind }) => (kind === 'secret' ? 'certificate: is not PEM' : undefined) })
    await until(() => nacks.length > 0)
    expect(nacks[0]?.resources).toEqual([{ key: 'secret/ns/broken', error: 'certificate: is not PEM' }])
    expect(store.snapshot().routes.size).toBe(1)
  })

  test('keeps the data plane of an unknown Gateway waiting until the Gateway appears', async () => {
    const { server, address } = await serve()
    server.publish({ gateways: new Map([['ns/other', [route('a'), service('web')]]]) })
    const { store, stream } = follow(address)
    await until(() => stream.isConnected())
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(store.snapshot().version).toBe(0)
    expect(store.pending()).toHaveLength(2)
    server.publish({ gateways: new Map([['ns/gw', []]]) })
    await until(() => store.isInitialised())
    expect(store.snapshot().version).toBe(0)
  })

  test('selects the snapshot of a Gateway with a long name by its safe name', async () => {
    const { server, address } = await serve()
    const gateway = 'g'.repeat(100)
    server.publish({ gateways: new Map([[`ns/${gateway}`, [route('a')]]]) })
    const { store } = follow(address, { node: { namespace: 'ns', gateway } })
    await until(() => store.isInitialised())
    expect([...store.snapshot().routes.keys()]).toEqual(['ns/a.00'])
  })

  test('authenticates with the token file, which is read for every connection', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'stream-'))
    closers.push(() => rm(directory, { recursive: true }))
    const tokenFile = join(directory, 'token')
    await writeFile(tokenFile, 'stale\n')
    const seen: unknown[] = []
    const { server, address } = await serve({
      async authenticate(metadata, role) {
        const authorization = metadata.get('authorization')[0]
        seen.push([authorization, role])
        if (authorization === 'Bearer broken') throw new Error('the API server is away')
        return authorization === 'Bearer fresh' ? { isAllowed: true } : { isAllowed: false, message: `requested gateway ${role} but authenticated as ns~x` }
      },
    })
    server.publish(gateways(route('a')))
    const { store, events } = follow(address, { tokenFile })
    const causes = (): string[] => events.flatMap((event) => (event.type === 'disconnected' ? [event.cause] : []))
    await until(() => causes().includes('UNAUTHENTICATED: requested gateway ns~gw but authenticated as ns~x'))
    await writeFile(tokenFile, 'broken')
    await until(() => causes().includes('UNAUTHENTICATED: authentication failed'))
    expect(store.snapshot().version).toBe(0)
    await writeFile(tokenFile, 'fresh')
    await until(() => store.isInitialised())
    expect(seen.at(-1)).toEqual(['Bearer fresh', 'ns~gw'])
  })

  test('uses TLS with the configured trust anchors, and rejects other certificates', async () => {
    const authority = makeAuthority('test')
    const leaf = makeCertificate({ name: 'localhost', hosts: ['127.0.0.1', 'localhost'], issuer: authority })
    const directory = await mkdtemp(join(tmpdir(), 'stream-'))
    closers.push(() => rm(directory, { recursive: true }))
    const rootCaFile = join(directory, 'ca.crt')
    const otherCaFile = join(directory, 'other.crt')
    await writeFile(rootCaFile, authority.certificate)
    await writeFile(otherCaFile, makeAuthority('other').certificate)
    const { server, address } = await serve({
      credentials: ServerCredentials.createSsl(null, [{ cert_chain: Buffer.from(leaf.certificate), private_key: Buffer.from(leaf.privateKey) }]),
    })
    server.publish(gateways(route('a')))
    const trusting = follow(`https://${address}`, { rootCaFile })
    const wary = follow(`https://${address}`, { rootCaFile: otherCaFile })
    await until(() => trusting.store.isInitialised() && wary.events.some((event) => event.type === 'disconnected'))
    expect(wary.stream.isConnected()).toBe(false)
    expect(wary.store.snapshot().version).toBe(0)
  })

  test('loads 5,000 routes, then hashes and sends only the one that changes', async () => {
    let hashed = 0
    const encode = createEncoder((text) => {
      hashed += 1
      return String(text.length).padStart(4, '0') + text.slice(-400).replaceAll(/\W/g, '').slice(-12)
    })
    const { server, address } = await serve({ encode })
    const routes = Array.from({ length: 5000 }, (_, index) => route(`r${index}`, `/${index}`))
    const startedAt = performance.now()
    server.publish(gateways(...routes))
    const { store, received } = follow(address)
    await until(() => store.isInitialised())
    console.log(`first load of 5,000 routes: ${Math.round(performance.now() - startedAt)} ms`)
    expect(store.snapshot().routes.size).toBe(5000)
    expect([hashed, received()]).toEqual([5000, 5000])
    server.publish(gateways(...routes.with(2500, route('r2500', '/edited'))))
    await until(() => store.snapshot().routes.get('ns/r2500.00')?.matches?.[0]?.path?.value === '/edited')
    expect([hashed, received()]).toEqual([5001, 5001])
  })

  test('leaves the store equal to the last published config after any publishes, with any reconnects between', async () => {
    const keys = ['a', 'b', 'c', 'd']
    const content = fc.dictionary(fc.constantFrom(...keys), fc.nat({ max: 2 }))
    const steps = fc.array(fc.record({ routes: content, services: content, isRestart: fc.boolean(), pauseMs: fc.constantFrom(0, 0, 3) }), {
      minLength: 1,
      maxLength: 6,
    })
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        const { forwarder, address, server: first } = await serveBehindForwarder()
        let server = first
        const { store } = follow(address, { random: () => 0 })
        let expected: Record<string, unknown> = {}
        for (const { routes, services, isRestart, pauseMs } of sequence) {
          const messages = [
            ...Object.entries(routes).map(([name, value]) => route(name, `/${value}`)),
            ...Object.entries(services).map(([name, value]) => service(name, 1 + value)),
          ]
          expected = Object.fromEntries(messages.map(({ kind, key, message }) => [`${kind}/${key}`, message]))
          if (isRestart) {
            forwarder.to = undefined
            await server.close()
            const next = await serve()
            server = next.server
            forwarder.to = next.port
          }
          server.publish(gateways(...messages))
          if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
        }
        const actual = (): Record<string, unknown> => {
          const { routes, services } = store.snapshot()
          return Object.fromEntries([
            ...[...routes].map(([key, message]) => [`route/${key}`, message]),
            ...[...services].map(([key, message]) => [`service/${key}`, message]),
          ])
        }
        const sorted = (record: Record<string, unknown>): string => JSON.stringify(Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1)))
        await until(() => sorted(actual()) === sorted(expected) && store.isInitialised())
        for (const close of closers.splice(0).reverse()) await close()
      }),
      { numRuns: 25 },
    )
  })
})
