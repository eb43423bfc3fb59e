import { connect as connectTcp, createServer, type AddressInfo, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { CallToolRequestSchema, ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { findFreePort } from '../../../e2e/harness/program/ports.ts'
import { makeSigningKey, makeToken } from '../../testing/tokens.ts'
import { Peers } from '../../program/workers/peers.ts'
import { resumeForWorker } from './answer/resumed.ts'
import type { SessionKeys } from '../../runtime/seal.ts'
import type { PeerMessages } from './session/sharing.ts'
import { WaitingCalls } from './session/waiting.ts'
import { staticTarget, testKey, type GatewayOptions } from './testing/gateway.ts'
import { modernCall, modernHeaders } from './testing/modern.ts'
import { sendModern, TestBed, until, type RawAnswer } from './testing/test-bed.ts'

let bed: TestBed
/** Both replicas listen on it, each on an address of its own. */
let port = 0
beforeEach(async () => {
  bed = new TestBed()
  port = await findFreePort()
})
afterEach(() => bed.close())

const HOSTS = ['127.0.0.1', '127.0.0.2'] as const
const otherKey = Buffer.alloc(32, 8)
const ELICITATION = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } }
const form = { message: 'Who?', requestedSchema: { type: 'object' as const, properties: { who: { type: 'string' as const } } } }
const inputResponses = { input_1: { action: 'accept', content: { who: 'me' } } }
const DONE = JSON.stringify({ who: 'me' })
const LOST = [-32603, expect.stringMatching(/has ended, or the instance of the gateway that has it cannot be reached/)]

const callTool = (url: URL, retry: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
  sendModern(url, 'tools/call', { name: 'own', ...retry }, { meta: ELICITATION, headers })
const textOf = ({ json }: RawAnswer) => (json.result?.['content'] as { text: string }[] | undefined)?.[0]?.text
const errorOf = ({ json }: RawAnswer) => [json.error?.code, json.error?.message]

/** What the retry of a call adds to it. */
function retryOf({ json }: RawAnswer): Record<string, unknown> {
  expect(json).toMatchObject({ result: { resultType: 'input_required' } })
  return { requestState: json.result?.['requestState'], inputResponses }
}

async function openPeers(host: string, keys: SessionKeys = [testKey]): Promise<Peers> {
  const peers = new Peers({ keys, address: { host, port }, ports: undefined, log: { error: () => undefined, debug: () => undefined } })
  await peers.listen()
  bed.onClose(() => closePeers(peers))
  return peers
}

const closePeers = (peers: Peers): Promise<void> => peers.drain({ minDrainMs: 0, maxDrainMs: 0 })

interface ReplicaOptions extends GatewayOptions {
  /** Session keys of both replicas. */
  readonly keysOf?: readonly [SessionKeys, SessionKeys]
  /** Called between the response of the user and that of the tool. */
  readonly onInput?: (extra: {
    readonly signal: AbortSignal
    sendNotification(notification: { method: 'notifications/own' }): Promise<void>
  }) => Promise<unknown>
}

/** Two replicas in front of a server whose tool returns what the user responds. */
async function startReplicas({ keysOf = [[testKey], [testKey]], onInput, ...options }: ReplicaOptions = {}) {
  const upstream = await bed.upstream((server) =>
    server.setRequestHandler(CallToolRequestSchema, async (_, extra) => {
      const { content } = await extra.sendRequest({ method: 'elicitation/create', params: form }, ElicitResultSchema)
      await onInput?.(extra)
      return { content: [{ type: 'text', text: JSON.stringify(content) }] }
    }),
  )
  const start = async (at: 0 | 1) => {
    const peers = await openPeers(HOSTS[at], keysOf[at])
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', upstream.port)] }, keys: keysOf[at], peers, ...options })
    return { url, peers }
  }
  return { upstream, one: await start(0), two: await start(1) }
}

describe('a call that waits for input in one replica', () => {
  test('continues with a retry that another replica receives, once', async () => {
    const { upstream, one, two } = await startReplicas()
    const retry = retryOf(await callTool(one.url))
    expect(textOf(await callTool(two.url, retry))).toBe(DONE)
    expect(errorOf(await callTool(two.url, retry))).toEqual(LOST)
    expect(errorOf(await callTool(one.url, retry))).toEqual(LOST)
    expect(upstream.log().filter((method) => method === 'tools/call')).toHaveLength(1)
  })

  test('continues while the key is rotated', async () => {
    const { one, two } = await startReplicas({
      keysOf: [
        [testKey, otherKey],
        [otherKey, testKey],
      ],
    })
    expect(textOf(await callTool(two.url, retryOf(await callTool(one.url))))).toBe(DONE)
    expect(textOf(await callTool(one.url, retryOf(await callTool(two.url))))).toBe(DONE)
  })

  test('is for the replicas with its key only', async () => {
    const { one, two } = await startReplicas({ keysOf: [[testKey], [otherKey]] })
    const retry = retryOf(await callTool(one.url))
    expect(errorOf(await callTool(two.url, retry))[0]).toBe(-32602)
    expect(textOf(await callTool(one.url, retry))).toBe(DONE)
  })

  test('is for its user only', async () => {
    const key = makeSigningKey('k')
    const issuer = 'https://idp.example'
    const providers = [{ issuer, jwks: { inline: JSON.stringify({ keys: [key.jwk] }) } }]
    const { one, two } = await startReplicas({
      attached: [{ target: { kind: 'Gateway', namespace: 'ns', name: 'gw' }, traffic: { jwtAuthentication: { mode: 'Strict', providers } } }],
    })
    const as = (sub: string) => ({ authorization: `Bearer ${makeToken(key, { iss: issuer, sub, exp: Math.floor(Date.now() / 1000) + 600 })}` })
    const retry = retryOf(await callTool(one.url, {}, as('ann')))
    expect(errorOf(await callTool(two.url, retry, as('bob')))[0]).toBe(-32602)
    expect(textOf(await callTool(two.url, retry, as('ann')))).toBe(DONE)
  })

  test('waits on if a replica sends a message that is no retry', async () => {
    const { one, two } = await startReplicas()
    const retry = retryOf(await callTool(one.url))
    const send = two.peers.send.bind(two.peers)
    let text = ''
    Object.defineProperty(two.peers, 'send', { value: (_: unknown, sent: string) => void (text = sent) })
    expect(errorOf(await callTool(two.url, retry))).toEqual(LOST)
    const message = JSON.parse(text) as object
    const texts = [
      'null',
      '[]',
      '{}',
      '['.repeat(100_000),
      text.slice(1),
      ...[{ responses: null }, { id: 1 }, { call: {} }].map((part) => JSON.stringify({ ...message, ...part })),
    ]
    for (const each of texts) expect((await send({ host: HOSTS[0], port }, each, () => undefined))?.status).not.toBe(200)
    expect(textOf(await callTool(one.url, retry))).toBe(DONE)
  })

  test('is cancelled when the client of the retry disconnects', async () => {
    const { upstream, one, two } = await startReplicas({
      async onInput({ signal, sendNotification }) {
        await sendNotification({ method: 'notifications/own' })
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
      },
    })
    const params = { name: 'own', ...retryOf(await callTool(one.url)) }
    const controller = new AbortController()
    const body = JSON.stringify(modernCall('tools/call', params, { meta: ELICITATION }))
    const response = await fetch(two.url, { method: 'POST', headers: modernHeaders('tools/call', params), body, signal: controller.signal })
    await response.body?.getReader().read()
    controller.abort()
    await until('the cancellation', () => upstream.log().includes('notifications/cancelled'))
    expect(upstream.log().filter((method) => method === 'tools/call')).toHaveLength(1)
  })

  test('is an error if its replica has ended', async () => {
    const { one, two } = await startReplicas()
    const retry = retryOf(await callTool(one.url))
    await closePeers(one.peers)
    expect(errorOf(await callTool(two.url, retry))).toEqual(LOST)
  })

  test('is an error if its replica ends before the response', async () => {
    const { one, two } = await startReplicas({ onInput: () => closePeers(one.peers) })
    expect(errorOf(await callTool(two.url, retryOf(await callTool(one.url))))).toEqual([-32603, 'an upstream broke off its response'])
  })

  test('is an error if nothing responds at the address of its replica', async () => {
    const silent = createServer()
    const sockets = new Set<Socket>()
    silent.on('connection', (socket) => void sockets.add(socket.on('error', () => undefined)))
    await new Promise<void>((resolve) => silent.listen(0, HOSTS[0], resolve))
    bed.onClose(async () => {
      for (const socket of sockets) socket.destroy()
      silent.close()
    })
    const address = { host: HOSTS[0], port: (silent.address() as AddressInfo).port }
    const { one, two } = await startReplicas()
    Object.defineProperty(one.peers, 'address', { value: address })
    expect(errorOf(await callTool(two.url, retryOf(await callTool(one.url))))).toEqual(LOST)
    expect(sockets.size).toBe(1)
  })
})

test('a long retry is read in steps, between which other requests are handled', async () => {
  const content = Object.fromEntries(Array.from({ length: 90_000 }, (_, index) => [`member-${index}`, 'text']))
  const text = JSON.stringify({ call: 'a', place: 'b', id: 'c', responses: { input_1: { action: 'accept', content } } })
  let turns = 0
  setImmediate(() => turns++)
  expect((await resumeForWorker(new WaitingCalls({ keys: [testKey] }), text)).status).toBe(404)
  expect(turns).toBe(1)
})

test('the official client of the revision responds to an elicitation through two replicas', async () => {
  const { one, two } = await startReplicas()
  let requests = 0
  const alternate = (_: string | URL, init?: RequestInit) => fetch(requests++ % 2 === 0 ? one.url : two.url, init)
  const client = new Client({ name: 'sdk', version: '1' }, { versionNegotiation: { mode: 'auto' }, capabilities: { elicitation: {} } })
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { who: 'me' } }))
  await client.connect(new StreamableHTTPClientTransport(one.url, { fetch: alternate }))
  bed.onClose(() => client.close())
  for (let call = 0; call < 3; call++) expect((await client.callTool({ name: 'own' })).content).toEqual([{ type: 'text', text: DONE }])
})

describe('the port for other replicas', () => {
  const psk = { ciphers: 'PSK', minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2', checkServerIdentity: () => undefined } as const
  test.each<[string, () => Socket]>([
    ['in plain text', () => connectTcp(port, HOSTS[0]).end('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}')],
    ['with bytes that are no handshake', () => connectTcp(port, HOSTS[0]).end(Buffer.alloc(4096, '\x16\x03\x01'))],
    ['of TLS without a shared key', () => connectTls({ port, host: HOSTS[0], rejectUnauthorized: false })],
    ['with an unknown key', () => connectTls({ ...psk, port, host: HOSTS[0], pskCallback: () => ({ identity: 'a', psk: Buffer.alloc(32) }) })],
  ])('rejects a connection %s', async (_, connect) => {
    const { one, two } = await startReplicas()
    const socket = connect()
    socket.on('secureConnect', () => socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}'))
    let received = ''
    socket.on('data', (bytes) => (received += bytes.toString('latin1'))).on('error', () => undefined)
    await new Promise((resolve) => socket.once('close', resolve))
    expect(received).not.toContain('HTTP')
    expect(textOf(await callTool(two.url, retryOf(await callTool(one.url))))).toBe(DONE)
  })

  test('serves replicas while silent connections come from one address, and while there are as many as it accepts', async () => {
    const { one, two } = await startReplicas()
    const silent: Socket[] = []
    bed.onClose(async () => {
      for (const socket of silent) socket.destroy()
    })
    const connect = async (localAddress: string, count: number): Promise<void> => {
      for (let opened = 0; opened < count; opened++) {
        const socket = connectTcp({ port, host: HOSTS[0], localAddress }).on('error', () => undefined)
        silent.push(socket)
        await new Promise((resolve) => socket.once('connect', resolve))
      }
    }
    const closed = (): number => silent.filter((socket) => socket.destroyed || socket.readableEnded).length
    const call = async (): Promise<void> => expect(textOf(await callTool(two.url, retryOf(await callTool(one.url))))).toBe(DONE)
    await connect('127.0.0.3', 100)
    for (const socket of silent) socket.resume()
    await until('connections of one address are closed', () => closed() >= 36)
    await call()
    // More than the port accepts, from many addresses.
    for (let address = 4; address < 21; address++) await connect(`127.0.0.${address}`, 63)
    await call()
  })

  test('rejects a replica with another key', async () => {
    await openPeers(HOSTS[0])
    const other = await openPeers(HOSTS[1], [otherKey])
    await expect(other.send({ host: HOSTS[0], port }, '{}', () => undefined)).rejects.toThrow(/UNKNOWN_PSK_IDENTITY/)
  })

  test('passes on that a message is no longer needed', async () => {
    const [one, two] = [await openPeers(HOSTS[0]), await openPeers(HOSTS[1])]
    const gone = Promise.withResolvers<Error>()
    const received = Promise.withResolvers<string>()
    one.handle((text, onGone) => {
      onGone(gone.resolve)
      received.resolve(text)
      return new Promise(() => undefined)
    })
    let cancel: (reason: Error) => void = () => undefined
    const sent = two.send({ host: HOSTS[0], port }, '{"id":1}', (callback) => (cancel = callback))
    expect(await received.promise).toBe('{"id":1}')
    cancel(new Error('the client is gone'))
    await expect(sent).rejects.toThrow('call was cancelled')
    await gone.promise
  })

  test('opens when the program that has it ends', async () => {
    const holder = createServer()
    await new Promise<void>((resolve) => holder.listen(port, HOSTS[0], resolve))
    const errors: unknown[] = []
    const log = { error: (message: string, fields: object) => errors.push({ message, ...fields }), debug: () => undefined }
    const peers: PeerMessages & Pick<Peers, 'listen' | 'drain'> = new Peers({ keys: [testKey], address: { host: HOSTS[0], port }, ports: undefined, log })
    await peers.listen()
    bed.onClose(() => peers.drain({ minDrainMs: 0, maxDrainMs: 0 }))
    expect([peers.address, errors]).toEqual([undefined, [expect.objectContaining({ message: expect.stringContaining('PEER_PORT'), code: 'PX4007', port })]])
    holder.close()
    await until('the port', () => peers.address !== undefined)
    expect(errors).toHaveLength(1)
  })
})
