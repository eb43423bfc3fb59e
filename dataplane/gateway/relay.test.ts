import { afterEach, expect, test } from '@jest/globals'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { Gateway } from './gateway.ts'
import { relayToBackend } from './relay.ts'
import type { TcpSession } from '../observe/telemetry/access-log/access-log.ts'
import type { Telemetry } from '../observe/telemetry/telemetry.ts'
import { testExchange } from '../testing/exchange.ts'
import { defaultSettings, Destination } from '../net/upstream/destination.ts'

const open: (Server | Socket)[] = []
afterEach(() => {
  for (const one of open.splice(0))
    if ('destroy' in one) one.destroy()
    else one.close()
})

async function listen(): Promise<{ server: Server; port: number; accepted: Promise<Socket> }> {
  const server = createServer({ pauseOnConnect: true })
  open.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  const accepted = once(server, 'connection').then(([socket]) => socket as Socket)
  return { server, port: (server.address() as AddressInfo).port, accepted }
}

test('TLS passthrough reaches a backend with a TLS policy unchanged, and its server name is logged', async () => {
  const [front, back] = [await listen(), await listen()]
  const client = connect(front.port, '127.0.0.1')
  open.push(client)
  const socket = await front.accepted
  const tls = { servername: 'other', ca: undefined, cert: undefined, key: undefined, subjectAltNames: undefined, verify: 'full', alpn: undefined } as const
  const config = {
    endpoints: [{ address: '127.0.0.1', port: back.port }],
    appProtocol: undefined,
    hostname: undefined,
    isHostRewritten: false,
    isDynamic: false,
    error: undefined,
  }
  const destination = new Destination('default/db', { ...config, settings: { ...defaultSettings, tls } }, () => {
    throw new Error('not HTTP')
  })
  const gateway = { findTcpRule: () => ({ rule: { labels: {}, pick: () => destination }, labels: {} }) } as unknown as Gateway
  const finished = new Promise<TcpSession>((resolve) => {
    const telemetry = { onTcpFinished: resolve } as unknown as Telemetry
    const initial = Buffer.from([0x16, 3, 1, 0, 1, 7])
    relayToBackend({ connection: testExchange().connection, listener: 'pass', sni: 'db.example', socket, initial }, gateway, telemetry)
  })
  const upstream = await back.accepted
  open.push(upstream)
  const [received] = (await once(upstream.resume(), 'data')) as [Buffer]
  expect([...received]).toEqual([0x16, 3, 1, 0, 1, 7])
  upstream.destroy()
  client.resume().end()
  expect(await finished).toMatchObject({ sni: 'db.example', error: undefined })
})

test('a TCP connection to a backend without endpoints is closed, and its log names the cause', async () => {
  const front = await listen()
  const client = connect(front.port, '127.0.0.1')
  open.push(client)
  const socket = await front.accepted
  const config = { endpoints: [], appProtocol: undefined, hostname: undefined, isHostRewritten: false, isDynamic: false, error: undefined }
  const destination = new Destination('default/db', { ...config, settings: defaultSettings }, () => {
    throw new Error('not HTTP')
  })
  const gateway = { findTcpRule: () => ({ rule: { labels: {}, pick: () => destination }, labels: {} }) } as unknown as Gateway
  const finished = new Promise<TcpSession>((resolve) => {
    const telemetry = { onTcpFinished: resolve } as unknown as Telemetry
    relayToBackend({ connection: testExchange().connection, listener: 'tcp', sni: undefined, socket, initial: undefined }, gateway, telemetry)
  })
  const closed = once(client.resume(), 'close')
  expect((await finished).error).toMatchObject({ code: 'NO_HEALTHY_BACKENDS', detail: 'default/db has no endpoints' })
  await closed
})
