import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { request as requestHttp, type IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import { connect as connectTcp } from 'node:net'
import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { WebSocket } from 'ws'
import { makeAuthority, makeCertificate } from '../certificates.ts'
import { startEcho, startTcpEcho, type EchoServer } from './echo.ts'
import { makeGrpcClient } from '../grpc-client.ts'

const authority = makeAuthority('test authority')
const leaf = makeCertificate({ name: 'localhost', hosts: ['localhost', '127.0.0.1'], issuer: authority })

describe('the echo upstream', () => {
  let echo: EchoServer
  let secure: EchoServer
  beforeAll(async () => {
    echo = await startEcho({ name: 'plain' })
    secure = await startEcho({ name: 'secure', tls: leaf })
  })
  afterAll(async () => {
    await echo.close()
    await secure.close()
  })

  test('returns an HTTP/1.1 request as JSON', async () => {
    const response = await fetch(`http://127.0.0.1:${echo.port}/a/b?x=1`, { method: 'POST', body: 'hello', headers: { 'x-test': 'yes' } })
    expect(await response.json()).toMatchObject({
      name: 'plain',
      protocol: 'HTTP/1.1',
      method: 'POST',
      path: '/a/b?x=1',
      body: 'hello',
      bodyBytes: 5,
      headers: { 'x-test': 'yes' },
    })
  })

  test('applies the query parameters to its response', async () => {
    const url = `http://127.0.0.1:${echo.port}`
    const failing = await fetch(`${url}/?status=418&header=x-a:b`)
    expect([failing.status, failing.headers.get('x-a')]).toEqual([418, 'b'])
    expect((await (await fetch(`${url}/?size=100000`)).text()).length).toBe(100_000)
    expect(await (await fetch(`${url}/?events=2&interval=1`)).text()).toMatch(/^id: 0\ndata: \d+\n\nid: 1\n/)
    const statuses = []
    for (let attempt = 0; attempt < 3; attempt++) statuses.push((await fetch(`${url}/?failures=2&id=a`)).status)
    expect(statuses).toEqual([503, 503, 200])
    await expect(fetch(`${url}/?close=1`)).rejects.toThrow()
  })

  test('sends HTTP/1.1 trailers', async () => {
    const request = requestHttp({ port: echo.port, path: '/?trailers=1', headers: { te: 'trailers' } }).end()
    const [response] = await once(request, 'response')
    response.resume()
    await once(response, 'end')
    expect(response.trailers).toEqual({ 'x-trailer': 'end' })
  })

  test('serves HTTP/2 with prior knowledge on the same port', async () => {
    const session = connectHttp2(`http://127.0.0.1:${echo.port}`)
    const stream = session.request({ ':path': '/two' })
    let body = ''
    for await (const chunk of stream.setEncoding('utf8')) body += chunk
    session.close()
    expect(JSON.parse(body)).toMatchObject({ protocol: 'HTTP/2.0', path: '/two', host: `127.0.0.1:${echo.port}` })
  })

  test('serves gRPC to grpc-js clients', async () => {
    const client = makeGrpcClient(`127.0.0.1:${echo.port}`)
    expect(await client.unary('hello')).toMatchObject({ message: 'hello', server: 'plain' })
    expect((await client.repeat('again', 3)).messages).toEqual(['again', 'again', 'again'])
    expect(await client.chat(['a', 'b'])).toEqual(['a', 'b'])
    await expect(client.unary('x', { 'x-grpc-status': '5', 'x-grpc-message': 'gone' })).rejects.toMatchObject({ code: grpc.status.NOT_FOUND, details: 'gone' })
    client.close()
  })

  test.each([
    ['WebSocket', () => echo.port, 'ws', {}],
    ['WebSocket over TLS', () => secure.port, 'wss', { rejectUnauthorized: false }],
  ])('serves clients that speak %s', async (_name, port, scheme, options) => {
    const client = new WebSocket(`${scheme}://127.0.0.1:${port()}/chat`, options)
    const [greeting] = await once(client, 'message')
    expect(JSON.parse(String(greeting))).toMatchObject({ path: '/chat' })
    client.send('ping')
    expect(String((await once(client, 'message'))[0])).toBe('ping')
    client.close()
    await once(client, 'close')
  })

  test('serves TLS with ALPN and a valid certificate', async () => {
    const tls = { ca: authority.certificate, servername: 'localhost' }
    const options = { host: 'localhost', port: secure.port, agent: false, ALPNProtocols: ['http/1.1'], ...tls }
    const request = requestHttps(options).end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    expect(JSON.parse((await response.toArray()).join(''))).toMatchObject({ protocol: 'HTTP/1.1', sni: 'localhost' })
    const session = connectHttp2(`https://localhost:${secure.port}`, tls)
    let body = ''
    for await (const chunk of session.request({ ':path': '/' }).setEncoding('utf8')) body += chunk
    session.close()
    expect(JSON.parse(body)).toMatchObject({ protocol: 'HTTP/2.0', sni: 'localhost' })
  })

  test('sends its name and then echoes TCP bytes', async () => {
    const tcp = await startTcpEcho({ name: 'tcp-one' })
    const socket = connectTcp(tcp.port, '127.0.0.1')
    socket.end('bytes')
    let text = ''
    for await (const chunk of socket.setEncoding('utf8')) text += chunk
    expect(text).toBe('tcp-one\nbytes')
    await tcp.close()
  })
})
