import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { request as requestHttp, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { WebSocket } from 'ws'
import { sendRaw } from '../../harness/client.ts'
import { makeGrpcClient } from '../../harness/grpc-client.ts'
import { isTrueWithin } from '../../harness/wait.ts'
import { modes, startEnvironment, type Environment } from './environment.ts'

describe.each(modes)('a data plane with a %s', (mode) => {
  let environment: Environment
  beforeAll(async () => {
    environment = await startEnvironment(mode)
  })
  afterAll(async () => {
    await environment?.stop()
  })

  test('keeps HTTP/1.1 connections to the client and to the upstream open', async () => {
    const heads = ['', '', 'connection: close\r\n'].map((last) => `GET /one HTTP/1.1\r\nhost: plain.test\r\n${last}\r\n`)
    const text = await sendRaw(environment.ports.HTTP, heads.join(''))
    expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(3)
    // With several workers, only requests of one client connection surely use the same upstream connection.
    expect(new Set(text.match(/"sourcePort":\d+/g)).size).toBe(1)
  })

  test('responds to pipelined requests in order', async () => {
    const head = (path: string, last = '') => `GET ${path} HTTP/1.1\r\nhost: plain.test\r\n${last}\r\n`
    const text = await sendRaw(environment.ports.HTTP, head('/one?delay=50') + head('/two') + head('/three', 'connection: close\r\n'))
    expect([...text.matchAll(/"path":"([^"]*)"/g)].map((match) => match[1])).toEqual(['/one?delay=50', '/two', '/three'])
  })

  test.each(['http1', 'http2'] as const)('sends no body for HEAD, 204 and 304 over %s', async (protocol) => {
    expect(await environment.send('plain.test', { method: 'HEAD', protocol })).toMatchObject({ status: 200, body: '' })
    expect(await environment.send('plain.test', { path: '/?status=204', protocol })).toMatchObject({ status: 204, body: '' })
    expect(await environment.send('plain.test', { path: '/?status=304', protocol })).toMatchObject({ status: 304, body: '' })
  })

  test.each(['http1', 'http2'] as const)('relays complete bodies in both directions over %s', async (protocol) => {
    const body = Buffer.alloc(3_000_000, 'y')
    expect((await environment.send('plain.test', { body, protocol })).json().bodyBytes).toBe(body.length)
    expect((await environment.send('plain.test', { path: '/?size=3000000', protocol })).body.length).toBe(3_000_000)
    expect((await environment.send('plain.test', { path: '/?chunks=3', protocol })).body).toBe('line 0\nline 1\nline 2\n')
  })

  test('accepts an upload with Expect: 100-continue', async () => {
    const request = requestHttp({ port: environment.ports.HTTP, method: 'POST', headers: { host: 'plain.test', expect: '100-continue', 'content-length': 4 } })
    request.flushHeaders()
    await once(request, 'continue')
    request.end('body')
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    expect(JSON.parse((await response.toArray()).join('')).body).toBe('body')
  })

  test('relays trailers over HTTP/1.1 with TE: trailers and over HTTP/2', async () => {
    const path = '/?trailers=1'
    expect((await environment.send('plain.test', { path, headers: { te: 'trailers' } })).trailers).toMatchObject({ 'x-trailer': 'end' })
    expect((await environment.send('plain.test', { path, protocol: 'http2' })).trailers).toMatchObject({ 'x-trailer': 'end' })
  })

  test('multiplexes HTTP/2 streams: a slow stream does not delay a fast one', async () => {
    const session = connectHttp2(`http://127.0.0.1:${environment.ports.HTTP}`)
    const openStream = (path: string) => session.request({ ':path': path, ':authority': 'plain.test' }).on('error', () => {})
    const slow = openStream('/slow?delay=60000')
    let isAnswered = false
    slow.once('response', () => (isAnswered = true))
    await once(openStream('/fast').resume(), 'end')
    expect(isAnswered).toBe(false)
    session.destroy()
  })

  test('relays gRPC calls of grpc-js: unary, streaming, metadata, trailers, status', async () => {
    const client = makeGrpcClient(`127.0.0.1:${environment.ports.HTTP}`, { authority: 'rpc.test' })
    const reply = await client.unary('hello')
    expect([reply.message, reply.trailers.get('x-trailer')]).toEqual(['hello', ['end']])
    expect((await client.repeat('m', 100)).messages.length).toBe(100)
    expect(await client.chat(['a', 'b', 'c'])).toEqual(['a', 'b', 'c'])
    await expect(client.unary('x', { 'x-grpc-status': '7', 'x-grpc-message': 'no' })).rejects.toMatchObject({ code: 7, details: 'no' })
    client.close()
  })

  test('relays WebSocket connections of ws and other upgrades', async () => {
    const client = new WebSocket(`ws://127.0.0.1:${environment.ports.HTTP}/chat`, { headers: { host: 'plain.test' } })
    await once(client, 'message')
    client.send('hello')
    expect(String((await once(client, 'message'))[0])).toBe('hello')
    client.close(1000)
    expect((await once(client, 'close'))[0]).toBe(1000)
    const head = 'GET / HTTP/1.1\r\nhost: plain.test\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n'
    expect(await sendRaw(environment.ports.HTTP, `${head}raw bytes`, { until: /raw bytes$/ })).toMatch(/^HTTP\/1\.1 101 [\s\S]*\r\n\r\nraw bytes$/)
  })

  test.each(['http1', 'http2'] as const)('does not buffer server-sent events over %s', async (protocol) => {
    const open = async (path: string) =>
      protocol === 'http1'
        ? ((await once(requestHttp({ port: environment.ports.HTTP, path, headers: { host: 'plain.test' } }).end(), 'response'))[0] as IncomingMessage)
        : connectHttp2(`http://127.0.0.1:${environment.ports.HTTP}`).request({ ':path': path, ':authority': 'plain.test' })
    const idsIn = (text: string) => [...text.matchAll(/^id: (\d)$/gm)].map((match) => match[1])
    const complete = await open('/?events=4&interval=20')
    let text = ''
    for await (const chunk of complete.setEncoding('utf8')) text += chunk
    if ('session' in complete) complete.session?.close()
    expect(idsIn(text)).toEqual(['0', '1', '2', '3'])
    // The second event is sent after a minute, so only the first one can arrive before.
    const slow = await open('/?events=2&interval=60000')
    slow.on('error', () => {})
    expect(idsIn(String((await once(slow, 'data'))[0]))).toEqual(['0'])
    if ('session' in slow) slow.session?.destroy()
    else slow.destroy()
  })

  test('relays TCP bytes and half-closed connections', async () => {
    expect(await sendRaw(environment.ports.TCP, 'bytes', { end: true })).toBe('bytes\nbytes')
  })

  test('passes TLS through for another name on the same port and closes connections for unknown names', async () => {
    const ca = environment.authority.certificate
    const relayed = await environment.send('relay.test', { port: environment.ports.TLS, tls: { ca, sni: 'relay.test' } })
    expect(relayed.json()).toMatchObject({ name: 'relayed', sni: 'relay.test' })
    await expect(environment.send('x', { port: environment.ports.TLS, tls: { ca, sni: 'unknown.test' } })).rejects.toThrow()
  })

  test('aborts the upstream request when the client aborts', async () => {
    const open = environment.blue.sockets.size
    const request = requestHttp({ port: environment.ports.HTTP, path: '/?delay=20000', headers: { host: 'plain.test' } }).end()
    request.on('error', () => {})
    expect(await isTrueWithin(60_000, () => environment.blue.requests.some((seen) => seen.path === '/?delay=20000'))).toBe(true)
    const during = environment.blue.sockets.size
    request.destroy()
    expect(await isTrueWithin(60_000, () => environment.blue.sockets.size < during || environment.blue.sockets.size < open)).toBe(true)
  })
})
