import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { startHttp1Server, type TestServer } from '../../server/http1/testing.ts'
import { createHttp1Pool } from './pool.ts'
import type { UpstreamPool } from '../types.ts'
import { findFreePort } from '../../../../e2e/harness/program/ports.ts'

// curl -> our server -> our client -> nginx, all over loopback.

const folder = mkdtempSync(join(tmpdir(), 'http1-nginx-'))
const big = randomBytes(8 * 1024 * 1024)
const text = 'All work and no play makes a dull proxy.\n'.repeat(500)
let nginx: ChildProcess
let pool: UpstreamPool
let proxy: TestServer
let attempts = 0

function config(port: number): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')
  return `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 64; }
http { access_log off; ${paths} client_max_body_size 64m; default_type text/plain;
  server { listen 127.0.0.1:${port}; root ${folder}/www;
    location /folder { keepalive_timeout 0; return 200 "${folder}"; }
    location /hello { return 200 "hello\\n"; }
    location /fields { return 200 "$request_method $host $http_x_a $http_connection $server_protocol\\n"; }
    location /connection { return 200 "$connection $connection_requests\\n"; }
    location /none { return 204; }
    location /moved { return 302 /hello; }
    location /gzip/ { alias ${folder}/www/; gzip on; gzip_types text/plain; }
    location /chunked/ { alias ${folder}/www/; ssi on; ssi_types text/plain; }
    location /trailers/ { alias ${folder}/www/; ssi on; ssi_types text/plain; add_trailer X-Sum $request_method; }
    location /put/ { alias ${folder}/www/put/; dav_methods PUT; }
    location /close { keepalive_timeout 0; return 200 "closing\\n"; } } }`
}

async function startNginx(): Promise<number> {
  // Debian installs nginx to /usr/sbin, which is not on the PATH of every user.
  const program = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin'].map((directory) => join(directory, 'nginx')).find((file) => existsSync(file))
  if (program === undefined) throw new Error('this test needs nginx: apt-get install nginx')
  mkdirSync(join(folder, 'www/put'), { recursive: true })
  writeFileSync(join(folder, 'www/big'), big)
  writeFileSync(join(folder, 'www/text'), text)
  for (; attempts < 5; attempts++) {
    const port = await findFreePort()
    writeFileSync(join(folder, 'nginx.conf'), config(port))
    nginx = spawn(program, ['-e', join(folder, 'error.log'), '-c', join(folder, 'nginx.conf')], { stdio: 'ignore' })
    for (let i = 0; i < 1000 && nginx.exitCode === null; i++) {
      if (await isOurs(port)) return port
      await sleep(20)
    }
    nginx.kill()
  }
  throw new Error('nginx does not start')
}

/** Whether the nginx on that port is ours, which knows the name of our directory, and not another process that took the port. */
async function isOurs(port: number): Promise<boolean> {
  try {
    return (await (await fetch(`http://127.0.0.1:${port}/folder`)).text()) === folder
  } catch {
    return false
  }
}

beforeAll(async () => {
  const port = await startNginx()
  pool = createHttp1Pool({ host: '127.0.0.1', port, tls: undefined, keepAlive: { idleMs: 60_000 } })
  proxy = await startHttp1Server(async (exchange) => {
    const call = pool.call(exchange.request, { connectMs: 20_000 })
    exchange.onAbort((reason) => call.cancel(reason))
    exchange.response = await call.response
  })
})
afterAll(async () => {
  pool.close()
  await proxy.close()
  nginx.kill()
  await new Promise((resolve) => nginx.once('exit', resolve))
  rmSync(folder, { recursive: true })
})

/** Head and body as curl got them; fails when curl does. */
function curl(path: string, ...options: string[]): Promise<{ head: string; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const args = ['-sS', '-m', '60', '--raw', '-i', ...options, `http://127.0.0.1:${proxy.port}${path}`]
    execFile('curl', args, { encoding: 'buffer', maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error !== null) return reject(new Error(`curl: ${stderr.toString()}`))
      const end = stdout.lastIndexOf('\r\n\r\n', stdout.indexOf('\r\n\r\n', stdout.includes('100 Continue') ? 30 : 0))
      resolve({ head: stdout.subarray(0, end).toString('latin1').toLowerCase(), body: stdout.subarray(end + 4) })
    })
  })
}
const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

test('a body of known length passes unchanged', async () => {
  const { head, body } = await curl('/hello')
  expect(head).toMatch(/^http\/1\.1 200 ok\r\n[^]*content-length: 6/)
  expect(body.toString()).toBe('hello\n')
})

test('8 MiB pass unchanged in both directions', async () => {
  expect(hash((await curl('/big')).body)).toBe(hash(big))
  const { head } = await curl('/put/file', '-T', join(folder, 'www/big'))
  expect(head).toContain('201 created')
  expect(hash((await curl('/put/file')).body)).toBe(hash(big))
})

test('an upload of unknown length waits for 100 Continue', async () => {
  const { head } = await curl('/put/chunked', '-T', join(folder, 'www/big'), '-H', 'Transfer-Encoding: chunked', '-H', 'Expect: 100-continue')
  expect(head).toMatch(/^http\/1\.1 100 continue\r\n\r\nhttp\/1\.1 201 created/)
  expect(hash((await curl('/put/chunked')).body)).toBe(hash(big))
})

test('end-to-end fields reach the upstream, hop-by-hop fields do not', async () => {
  const { body } = await curl('/fields', '-X', 'DELETE', '-H', 'X-A: 1', '-H', 'Host: example.com', '-H', 'Connection: x-b', '-H', 'X-B: 2')
  expect(body.toString()).toBe('DELETE example.com 1  HTTP/1.1\n')
})

test('the connection to the upstream is reused', async () => {
  const first = (await curl('/connection')).body.toString().split(' ')
  const second = (await curl('/connection')).body.toString().split(' ')
  expect(second[0]).toBe(first[0])
  expect(Number(second[1])).toBe(Number(first[1]) + 1)
})

test('a new connection is opened after the upstream closed one', async () => {
  const before = (await curl('/connection')).body.toString().split(' ')[0]
  expect((await curl('/close')).body.toString()).toBe('closing\n')
  expect((await curl('/connection')).body.toString().split(' ')[0]).not.toBe(before)
})

test('a chunked response passes unchanged', async () => {
  const { head, body } = await curl('/chunked/text')
  expect(head).toContain('transfer-encoding: chunked')
  expect(dechunk(body).body).toBe(text)
})

test('a compressed response passes unchanged', async () => {
  const { head, body } = await curl('/gzip/text', '-H', 'Accept-Encoding: gzip')
  expect(head).toContain('content-encoding: gzip')
  expect(gunzipSync(Buffer.from(dechunk(body).body, 'latin1')).toString()).toBe(text)
})

test.each([
  ['a client that accepts trailers receives them', ['-H', 'TE: trailers'], 'X-Sum: GET\r\n'],
  ['a client that does not accept trailers receives none', [], ''],
])('%s', async (_, options, expected) => {
  const { body } = await curl('/trailers/text', ...options)
  expect(dechunk(body)).toEqual({ body: text, trailers: expected.toLowerCase().replace('get', 'GET') })
})

test('HEAD has the length and no body', async () => {
  const { head, body } = await curl('/hello', '--head')
  expect(head).toContain('content-length: 6')
  expect(body.length).toBe(0)
})

test('204 and 304 have no body', async () => {
  expect((await curl('/none')).head).toMatch(/^http\/1\.1 204 no content\r\n(?![^]*content-length)/)
  const etag = /etag: (.*)/.exec((await curl('/text')).head)?.[1] ?? ''
  const { head, body } = await curl('/text', '-H', `If-None-Match: ${etag}`)
  expect(head).toMatch(/^http\/1\.1 304 not modified\r\n/)
  expect(body.length).toBe(0)
})

test('a range response and a redirect pass unchanged', async () => {
  const { head, body } = await curl('/text', '-r', '4-7')
  expect(head).toContain('content-range: bytes 4-7/')
  expect(body.toString()).toBe(text.slice(4, 8))
  expect((await curl('/moved')).head).toMatch(/^http\/1\.1 302 [^]*location: /)
})

test('an HTTP/1.0 client receives a chunked response until the end of the connection', async () => {
  const { head, body } = await curl('/chunked/text', '--http1.0')
  expect(head).toContain('connection: close')
  expect(body.toString()).toBe(text)
})

/** Decodes `curl --raw`, independently of the code under test. */
function dechunk(raw: Buffer): { body: string; trailers: string } {
  let rest = raw.toString('latin1')
  let body = ''
  for (;;) {
    const lineEnd = rest.indexOf('\r\n')
    const size = Number.parseInt(rest.slice(0, lineEnd), 16)
    if (size === 0) return { body, trailers: rest.slice(lineEnd + 2, -2) }
    body += rest.slice(lineEnd + 2, lineEnd + 2 + size)
    rest = rest.slice(lineEnd + 4 + size)
  }
}
