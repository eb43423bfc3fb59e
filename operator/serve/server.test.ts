import { afterEach, describe, expect, test } from '@jest/globals'
import { Client, credentials, Metadata, status, type ClientDuplexStream, type ServiceError } from '@grpc/grpc-js'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { ADDRESS_TYPE, RESOURCE_TYPE } from '#api/names.ts'
import { DeltaDiscoveryRequestSchema, DeltaDiscoveryResponseSchema } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import type { DeltaDiscoveryRequest, DeltaDiscoveryResponse } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import type { ServedMessage } from './encode.ts'
import type { Nack } from './nack.ts'
import { createConfigServer, type ConfigServer, type ConfigServerOptions } from './server.ts'
import { until } from '../../e2e/harness/wait.ts'

const SERVICE = '/envoy.service.discovery.v3.AggregatedDiscoveryService'
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const bind = (key: string, port = 1): ServedMessage => ({ kind: 'bind', key, message: { key, port } })
const service = (key: string): ServedMessage => ({ kind: 'service', key, message: { key, ports: [] } })

type RequestFields = Partial<
  Pick<DeltaDiscoveryRequest, 'typeUrl' | 'resourceNamesSubscribe' | 'resourceNamesUnsubscribe' | 'initialResourceVersions' | 'responseNonce'>
> & {
  node?: { id?: string; metadata: Record<string, string | number> }
  errorDetail?: { code: number; message: string }
}

/** A client without any logic: what it sends is what the test says. */
class RawClient {
  readonly responses: DeltaDiscoveryResponse[] = []
  error: ServiceError | undefined = undefined
  readonly #call: ClientDuplexStream<DeltaDiscoveryRequest, DeltaDiscoveryResponse>
  #read = 0

  constructor(port: number, method = 'DeltaAggregatedResources') {
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 })
    this.#call = client.makeBidiStreamRequest(
      `${SERVICE}/${method}`,
      (request: DeltaDiscoveryRequest) => Buffer.from(toBinary(DeltaDiscoveryRequestSchema, request)),
      (bytes: Buffer) => fromBinary(DeltaDiscoveryResponseSchema, bytes),
      new Metadata(),
    )
    this.#call.on('data', (response: DeltaDiscoveryResponse) => this.responses.push(response))
    this.#call.on('error', (error: ServiceError) => (this.error = error))
    closers.push(() => {
      this.#call.cancel()
      client.close()
    })
  }

  send(request: RequestFields): void {
    this.#call.write(create(DeltaDiscoveryRequestSchema, { typeUrl: RESOURCE_TYPE, ...request }))
  }

  open(request: RequestFields = {}, role = 'ns~gw'): void {
    const metadata: Record<string, string> = role === '' ? {} : { role }
    this.send({ node: { id: 'node', metadata }, ...request })
  }

  /** Waits for the next response, and acknowledges it by default. */
  async next(isAcknowledged = true): Promise<{ updated: string[]; removed: string[]; nonce: string }> {
    await until(() => this.responses.length > this.#read)
    const { resources, removedResources, nonce, typeUrl } = this.responses[this.#read++] as DeltaDiscoveryResponse
    if (isAcknowledged) this.send({ typeUrl, responseNonce: nonce })
    return { updated: resources.map(({ name }) => name), removed: removedResources, nonce }
  }

  close(): void {
    this.#call.cancel()
  }

  get unread(): number {
    return this.responses.length - this.#read
  }
}

/** Time in which the server would have sent an unwanted response on most machines. Wanted responses are awaited without it. */
const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 40))

async function serve(messages: ServedMessage[] | undefined, options: ConfigServerOptions = {}) {
  const server: ConfigServer = createConfigServer({ debounce: { quietMs: 1, maxMs: 10 }, ...options })
  closers.push(() => server.close())
  const port = await server.listen('127.0.0.1:0')
  const publish = (...next: ServedMessage[]): void => server.publish({ gateways: new Map([['ns/gw', next]]) })
  if (messages !== undefined) publish(...messages)
  return { server, port, publish, connect: (method?: string) => new RawClient(port, method) }
}

describe('the config server', () => {
  test('responds to an empty subscription with all resources, a version and a nonce', async () => {
    const { connect } = await serve([bind('a'), bind('b'), service('s')])
    const client = connect()
    client.open()
    expect(await client.next()).toMatchObject({ updated: ['bind/a', 'bind/b'], removed: [] })
    const [response] = client.responses
    expect(response).toMatchObject({ systemVersionInfo: '1', typeUrl: RESOURCE_TYPE })
    expect(response?.resources[0]?.resource?.typeUrl).toBe(RESOURCE_TYPE)
    client.send({ typeUrl: ADDRESS_TYPE })
    expect(await client.next()).toMatchObject({ updated: ['service/s'] })
    expect(new Set(client.responses.map(({ nonce }) => nonce)).size).toBe(2)
  })

  test('sends the named resources of a subscription and their changes, and absent ones as removed', async () => {
    const { connect, publish } = await serve([bind('a'), bind('b')])
    const client = connect()
    client.open({ resourceNamesSubscribe: ['bind/a', 'bind/x'] })
    expect(await client.next()).toMatchObject({ updated: ['bind/a'], removed: ['bind/x'] })
    publish(bind('a'), bind('b', 2))
    await settle()
    expect(client.unread).toBe(0)
    publish(bind('a', 2), bind('b', 2), bind('x'))
    expect(await client.next()).toMatchObject({ updated: ['bind/a', 'bind/x'] })
    client.send({ resourceNamesSubscribe: ['bind/b'], resourceNamesUnsubscribe: ['bind/a'] })
    expect(await client.next()).toMatchObject({ updated: ['bind/b'] })
    publish(bind('a', 3), bind('b', 3), bind('x'))
    expect(await client.next()).toMatchObject({ updated: ['bind/b'], removed: [] })
  })

  test('sends a resource again when it is subscribed again, and treats the name * as the wildcard', async () => {
    const { connect, publish } = await serve([bind('a'), bind('b')])
    const client = connect()
    client.open({ resourceNamesSubscribe: ['bind/a'] })
    await client.next()
    client.send({ resourceNamesSubscribe: ['bind/a'] })
    expect(await client.next()).toMatchObject({ updated: ['bind/a'] })
    client.send({ resourceNamesSubscribe: ['*'] })
    expect(await client.next()).toMatchObject({ updated: ['bind/b'] })
    // Asked for again in the same request, so that an answer tells when the server has read it.
    client.send({ resourceNamesUnsubscribe: ['*'], resourceNamesSubscribe: ['bind/a'] })
    expect(await client.next()).toMatchObject({ updated: ['bind/a'] })
    publish(bind('a', 2), bind('b', 2))
    expect(await client.next()).toMatchObject({ updated: ['bind/a'] })
  })

  test('sends a reconnecting client the changes and removals since the versions that it holds', async () => {
    const { connect } = await serve([bind('same'), bind('changed'), bind('added')])
    const first = connect()
    first.open()
    await first.next()
    const same = first.responses[0]?.resources.find(({ name }) => name === 'bind/same')?.version ?? ''
    const second = connect()
    second.open({ initialResourceVersions: { 'bind/same': same, 'bind/changed': 'old', 'bind/gone': 'old' } })
    expect(await second.next()).toMatchObject({ updated: ['bind/changed', 'bind/added'], removed: ['bind/gone'] })
    const third = connect()
    third.open({ initialResourceVersions: Object.fromEntries(first.responses[0]?.resources.map(({ name, version }) => [name, version]) ?? []) })
    expect(await third.next()).toMatchObject({ updated: [], removed: [] })
  })

  test('sends nothing while a response is unacknowledged, then all changes at once', async () => {
    const { connect, publish } = await serve([bind('a')])
    const client = connect()
    client.open()
    const { nonce } = await client.next(false)
    publish(bind('a', 2))
    await settle()
    publish(bind('a', 3), bind('b'))
    await settle()
    expect(client.unread).toBe(0)
    client.send({ responseNonce: 'of another time' })
    await settle()
    expect(client.unread).toBe(0)
    client.send({ responseNonce: nonce })
    expect(await client.next()).toMatchObject({ updated: ['bind/a', 'bind/b'] })
    expect(client.responses).toHaveLength(2)
  })

  test('reports a nack without responding to it, and ignores a nack with an expired nonce', async () => {
    const nacks: Nack[] = []
    const { connect, server } = await serve([bind('a')], { onNack: (nack) => nacks.push(nack) })
    const client = connect()
    client.open()
    const { nonce } = await client.next(false)
    const message = JSON.stringify([{ key: 'bind/a', error: 'port: no' }, { unrelated: 1 }])
    client.send({ responseNonce: 'expired', errorDetail: { code: 3, message } })
    client.send({ responseNonce: nonce, errorDetail: { code: 3, message } })
    client.send({ responseNonce: nonce, errorDetail: { code: 3, message: 'again' } })
    await until(() => nacks.length > 0)
    await settle()
    expect(nacks).toEqual([{ role: 'ns~gw', nodeId: 'node', typeUrl: RESOURCE_TYPE, nonce, message, resources: [{ key: 'bind/a', error: 'port: no' }] }])
    expect([server.stats().nacks, client.unread]).toEqual([1, 0])
  })

  test('keeps what a data plane reports until it reports anew or disconnects, and does not respond', async () => {
    let calls = 0
    const { server, connect } = await serve([bind('a')], { onReport: () => void calls++ })
    const refused = { plugin: 'ns/p/a', problem: 'ns/m/index.ts:1:2: broken' }
    const report = (message: string): void => client.send({ errorDetail: { code: status.FAILED_PRECONDITION, message } })
    const [client, other] = [connect(), connect()]
    for (const each of [client, other]) each.open()
    for (const each of [client, other]) await each.next()
    report('{"plugins":"x"}')
    report('not JSON')
    report('{"plugins":[],"heldTools":1}')
    report(JSON.stringify({ plugins: [{ plugin: 'ns/p/a', problem: 'ns/m/index.ts:1:2:\u001b\n\u202ebroken' }, { plugin: 1 }] }))
    await until(() => calls === 1)
    expect(server.reports()).toEqual(new Map([['ns~gw', { plugins: [{ ...refused, problem: 'ns/m/index.ts:1:2: broken' }], heldTools: [], rollouts: [] }]]))
    report(JSON.stringify({ plugins: [refused] }))
    other.send({
      errorDetail: {
        code: status.FAILED_PRECONDITION,
        message: JSON.stringify({ plugins: [refused, { plugin: 'ns/p/b', problem: 'x'.repeat(5000) }], heldTools: ['ns/m/b', 'ns/m/a\n', 2] }),
      },
    })
    await until(() => calls === 2)
    expect(server.reports().get('ns~gw')).toEqual({
      plugins: [refused, { plugin: 'ns/p/b', problem: 'x'.repeat(1000) }],
      heldTools: ['ns/m/b', 'ns/m/a '],
      rollouts: [],
    })
    report('{"plugins":[]}')
    await until(() => calls === 3)
    expect(server.reports().get('ns~gw')?.plugins).toHaveLength(2)
    other.close()
    await until(() => calls === 4)
    expect([server.reports(), server.stats().nacks, client.unread]).toEqual([new Map(), 0, 0])
  })

  test('sends new services before the routes that need them, and removes old ones after the routes that needed them', async () => {
    const { connect, publish } = await serve([bind('a'), service('old')])
    const client = connect()
    client.open()
    await client.next()
    client.send({ typeUrl: ADDRESS_TYPE })
    await client.next()
    // When this is answered, the server has read the acknowledgement of the services, too.
    client.send({ resourceNamesSubscribe: ['bind/a'] })
    await client.next()
    publish(bind('a', 2), service('new'))
    expect([await client.next(), await client.next(), await client.next()]).toMatchObject([
      { updated: ['service/new'], removed: [] },
      { updated: ['bind/a'] },
      { updated: [], removed: ['service/old'] },
    ])
    publish(bind('a', 3))
    expect([await client.next(), await client.next()]).toMatchObject([{ updated: ['bind/a'] }, { removed: ['service/new'] }])
  })

  test('sends a client without a role all services, and no resources of a Gateway', async () => {
    const { connect } = await serve([bind('a'), service('s')])
    const client = connect()
    client.open({}, '')
    expect(await client.next()).toMatchObject({ updated: [] })
    client.send({ typeUrl: ADDRESS_TYPE })
    expect(await client.next()).toMatchObject({ updated: ['service/s'] })
  })

  test('sends the client of another Gateway nothing', async () => {
    const { connect } = await serve([bind('a'), service('s')])
    const client = connect()
    client.open({}, 'ns~other')
    client.send({ typeUrl: ADDRESS_TYPE })
    await settle()
    expect([client.responses, client.error]).toEqual([[], undefined])
  })

  test('reads no request before the client is authenticated', async () => {
    let allow: (() => void) | undefined
    const { connect } = await serve([bind('a')], { authenticate: () => new Promise((resolve) => (allow = () => resolve({ isAllowed: true }))) })
    const client = connect()
    client.open()
    client.send({ typeUrl: ADDRESS_TYPE })
    await until(() => allow !== undefined)
    await settle()
    expect(client.responses).toEqual([])
    allow?.()
    expect(await client.next()).toMatchObject({ updated: ['bind/a'] })
    expect(await client.next()).toMatchObject({ updated: [] })
  })

  interface Ended {
    readonly code: status
    readonly details: string
    readonly run: (client: RawClient) => void
    readonly options?: ConfigServerOptions
    readonly method?: string
  }
  const openStream = (client: RawClient): void => client.open()
  test.each<[sentence: string, ended: Ended]>([
    [
      'the state-of-the-world method',
      {
        code: status.UNIMPLEMENTED,
        details: `The server does not implement the method ${SERVICE}/StreamAggregatedResources`,
        run: openStream,
        method: 'StreamAggregatedResources',
      },
    ],
    [
      'an unknown type',
      {
        code: status.INVALID_ARGUMENT,
        details: `type_url "x" is unknown; use one of ${RESOURCE_TYPE}, ${ADDRESS_TYPE}`,
        run: (client) => client.open({ typeUrl: 'x' }),
      },
    ],
    [
      'a role that is not a string',
      {
        code: status.INVALID_ARGUMENT,
        details: 'node metadata: role must be a string `<namespace>~<gateway>`',
        run: (client) => client.send({ node: { metadata: { role: 1 } } }),
      },
    ],
    [
      'a client that fails authentication',
      { code: status.UNAUTHENTICATED, details: 'not you', run: openStream, options: { authenticate: async () => ({ isAllowed: false, message: 'not you' }) } },
    ],
    [
      'a client whose authentication throws, without the cause',
      {
        code: status.UNAUTHENTICATED,
        details: 'authentication failed',
        run: openStream,
        options: { authenticate: () => Promise.reject(new Error('10.0.0.1 is down')) },
      },
    ],
    [
      'a client that sends no request',
      {
        code: status.DEADLINE_EXCEEDED,
        details: 'no first request within 20 ms; send node and type_url',
        run: () => undefined,
        options: { openTimeoutMs: 20 },
      },
    ],
  ])('ends the stream of %s', async (_, { code, details, run, options, method }) => {
    const { connect, server } = await serve([bind('a')], options)
    const client = connect(method)
    run(client)
    await until(() => client.error !== undefined)
    expect(client.error).toMatchObject({ code, details })
    expect(client.responses).toEqual([])
    expect(server.stats().streams).toBe(0)
  })

  test('forgets the stream of a disconnected client', async () => {
    const { connect, server } = await serve([bind('a')])
    const client = connect()
    client.open()
    await client.next()
    expect(server.stats().streams).toBe(1)
    closers.pop()?.()
    await until(() => server.stats().streams === 0)
  })

  test('listens beyond loopback only with authentication or isOpen', async () => {
    const closed = createConfigServer()
    for (const address of ['0.0.0.0:0', '[::]:0', '10.0.0.1:0', 'example.org:0'])
      await expect(closed.listen(address)).rejects.toThrow(`config server: ${address} is not a loopback address such as 127.0.0.1:9978`)
    await closed.close()
    const open = createConfigServer({ isOpen: true })
    closers.push(() => open.close())
    expect(await open.listen('0.0.0.0:0')).toBeGreaterThan(0)
  })

  test('names an address that is in use', async () => {
    const { port } = await serve([])
    const second = createConfigServer()
    closers.push(() => second.close())
    await expect(second.listen(`127.0.0.1:${port}`)).rejects.toThrow(`config server: cannot listen on 127.0.0.1:${port}: the port is in use`)
  })
})
