import { createSecureServer } from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, expect, test } from '@jest/globals'
import { toErrorResponse } from '../../request/exchange/error.ts'
import { readBody } from '../../http/body.ts'
import { listen } from '../../net/server/http1/testing.ts'
import { makeAuthority, makeCertificate } from '../../testing/certificates.ts'
import { testRequest } from '../../testing/exchange.ts'
import { createHttp1Pool } from '../../net/upstream/http1/pool.ts'
import { createHttp2Pool } from '../../net/upstream/http2/pool.ts'
import type { Transport, UpstreamPool } from '../../net/upstream/types.ts'
import { toProxyFailure } from './failure.ts'

const open: (() => unknown)[] = []
afterEach(() => {
  for (const close of open.splice(0).toReversed()) close()
})
const authority = makeAuthority()
const leaf = makeCertificate({ name: 'upstream.test', authority })
const key = { key: leaf.privateKey, cert: leaf.certificate }
const tls: Transport['tls'] = {
  servername: 'other.test',
  ca: [authority.certificate],
  cert: undefined,
  key: undefined,
  subjectAltNames: undefined,
  verify: 'full',
  alpn: undefined,
}

async function listenOn(server: Server): Promise<number> {
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => undefined)
    open.push(() => socket.destroy())
  })
  open.push(() => server.close())
  return listen(server)
}
const raw = (onData: (socket: Socket) => void): Promise<number> => listenOn(createServer((socket) => void socket.once('data', () => onData(socket))))
const http1 = (port: number, own: Partial<Transport> = {}): UpstreamPool =>
  createHttp1Pool({ host: '127.0.0.1', port, tls: undefined, keepAlive: undefined, ...own })
const http2 = (port: number, own: Partial<Transport> = {}): UpstreamPool =>
  createHttp2Pool({ host: '127.0.0.1', port, tls: undefined, keepAlive: undefined, ...own })

test.each<[string, () => Promise<UpstreamPool>, string, RegExp]>([
  ['a refused connection', async () => http1(1), '503 upstream call failed: connection refused', /^127\.0\.0\.1:1: connect failed: ECONNREFUSED$/],
  ['a refused HTTP/2 connection', async () => http2(1), '503 upstream call failed: connection refused', /^127\.0\.0\.1:1: connect failed: ECONNREFUSED$/],
  [
    'a closed connection',
    async () => http1(await raw((socket) => void socket.end())),
    '503 upstream call failed: connection reset',
    /^127\.0\.0\.1:\d+: connection closed$/,
  ],
  [
    'a reset',
    async () => http1(await raw((socket) => void socket.resetAndDestroy())),
    '503 upstream call failed: connection reset',
    /^127\.0\.0\.1:\d+: .*ECONNRESET/,
  ],
  [
    'an ambiguous response',
    async () => http1(await raw((socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n'))),
    '503 upstream call failed: protocol error',
    /^127\.0\.0\.1:\d+: content-length together with transfer-encoding$/,
  ],
  [
    'a protocol switch that was not requested',
    async () => http1(await raw((socket) => void socket.write('HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n'))),
    '502 request upgrade failed, protocol not switched as requested',
    /^127\.0\.0\.1:\d+: switched protocols unasked$/,
  ],
  [
    'a certificate for another name',
    async () => http1(await listenOn(createTlsServer(key)), { tls }),
    '503 upstream call failed: TLS handshake failed',
    /^127\.0\.0\.1:\d+: connect failed: ERR_TLS_CERT_ALTNAME_INVALID$/,
  ],
  [
    'a certificate for another name over HTTP/2',
    async () => http2(await listenOn(createSecureServer(key)), { tls }),
    '503 upstream call failed: TLS handshake failed',
    /^127\.0\.0\.1:\d+: connect failed: ERR_TLS_CERT_ALTNAME_INVALID$/,
  ],
  [
    'a plaintext server behind TLS',
    async () => http1(await raw((socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')), { tls }),
    '503 upstream call failed: TLS handshake failed',
    /^127\.0\.0\.1:\d+: connect failed: /,
  ],
  [
    'a name that does not resolve',
    async () => http1(80, { host: 'secret-name.invalid' }),
    '503 backends required DNS resolution which failed',
    /^secret-name\.invalid:80: connect failed: /,
  ],
  [
    'a silent TLS server',
    async () => http1(await raw(() => undefined), { tls }),
    '504 upstream call timeout',
    /^127\.0\.0\.1:\d+: no connection within 200 ms$/,
  ],
])('a client gets the class of %s, and logs get the address and the cause', async (_, start, expected, cause) => {
  const pool = await start()
  open.push(() => pool.close())
  const request = testRequest()
  const thrown = await pool.call(request, { connectMs: expected.startsWith('504') ? 200 : 20_000 }).response.then(
    () => undefined,
    (error: unknown) => error,
  )
  const failure = toProxyFailure(thrown)
  const { status, body } = toErrorResponse(failure, request)
  expect(`${status} ${(await readBody(body, 10_000)).bytes.toString()}`).toBe(expected)
  expect((failure.cause as Error).message).toMatch(cause)
})
