import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createHttp1Pool } from './pool.ts'
import { readResponse, testRequest } from './testing.ts'
import { UpstreamError, type UpstreamTls } from '../types.ts'

const folder = mkdtempSync(join(tmpdir(), 'http1-tls-'))
const read = (name: string): string => readFileSync(join(folder, name), 'utf8')

/** Makes `name.key` and `name.crt`; signed by `ca`, or by itself. */
function certify(name: string, extensions: string, ca?: string): void {
  const run = (...options: string[]): void => void execFileSync('openssl', options, { cwd: folder, stdio: 'ignore' })
  writeFileSync(join(folder, `${name}.ext`), extensions)
  run('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', `${name}.key`)
  run('req', '-new', '-key', `${name}.key`, '-subj', `/CN=${name}`, '-out', `${name}.csr`)
  const signer = ca === undefined ? ['-signkey', `${name}.key`] : ['-CA', `${ca}.crt`, '-CAkey', `${ca}.key`, '-CAcreateserial']
  run('x509', '-req', '-in', `${name}.csr`, ...signer, '-days', '2', '-extfile', `${name}.ext`, '-out', `${name}.crt`)
}

let server: Server
let port = 0
beforeAll(async () => {
  certify('ca', 'basicConstraints=critical,CA:TRUE')
  certify('other', 'basicConstraints=critical,CA:TRUE')
  certify('server', 'subjectAltName=DNS:up.example.com,DNS:*.wild.example.com,URI:spiffe://td/ns/a/sa/b', 'ca')
  certify('client', 'subjectAltName=DNS:client', 'ca')
  server = createServer(
    { key: read('server.key'), cert: read('server.crt'), ca: read('ca.crt'), requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      const socket = request.socket as TLSSocket
      response.end(`${String(socket.servername)} ${socket.authorized ? 'known' : 'unknown'}`)
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  rmSync(folder, { recursive: true })
  server.closeAllConnections()
  return new Promise((resolve) => server.close(resolve))
})

const base: UpstreamTls = {
  servername: 'up.example.com',
  ca: undefined,
  cert: undefined,
  key: undefined,
  subjectAltNames: undefined,
  verify: 'full',
  alpn: undefined,
}
const uri = (value: string): UpstreamTls['subjectAltNames'] => [{ type: 'URI', value }]
const host = (value: string): UpstreamTls['subjectAltNames'] => [{ type: 'Hostname', value }]

const rows: [string, () => Partial<UpstreamTls>, string][] = [
  ['the name of the server is in the certificate', () => ({ ca: [read('ca.crt')] }), '200 up.example.com unknown'],
  ['the name of the server is not in the certificate', () => ({ ca: [read('ca.crt')], servername: 'no.example.com' }), 'connect'],
  ['another authority signed it', () => ({ ca: [read('other.crt')] }), 'connect'],
  ['one of two authorities signed it', () => ({ ca: [read('other.crt'), read('ca.crt')] }), '200 up.example.com unknown'],
  ['the system does not know the authority', () => ({}), 'connect'],
  ['only the chain counts', () => ({ ca: [read('ca.crt')], servername: 'no.example.com', verify: 'chain' }), '200 no.example.com unknown'],
  ['only the chain counts, and it is wrong', () => ({ ca: [read('other.crt')], verify: 'chain' }), 'connect'],
  ['nothing counts', () => ({ ca: [read('other.crt')], servername: 'no.example.com', verify: 'none' }), '200 no.example.com unknown'],
  [
    'a configured URI is in the certificate',
    () => ({ ca: [read('ca.crt')], servername: 'sni', subjectAltNames: uri('spiffe://td/ns/a/sa/b') }),
    '200 sni unknown',
  ],
  ['a configured URI is not in the certificate', () => ({ ca: [read('ca.crt')], subjectAltNames: uri('spiffe://td/ns/a/sa/c') }), 'connect'],
  [
    'a configured hostname matches a wildcard',
    () => ({ ca: [read('ca.crt')], servername: 'sni', subjectAltNames: host('x.wild.example.com') }),
    '200 sni unknown',
  ],
  ['a configured hostname is not in the certificate, though the SNI is', () => ({ ca: [read('ca.crt')], subjectAltNames: host('no.example.com') }), 'connect'],
  [
    'one of several configured names is enough',
    () => ({ ca: [read('ca.crt')], subjectAltNames: [...(host('no.example.com') ?? []), ...(uri('spiffe://td/ns/a/sa/b') ?? [])] }),
    '200 up.example.com unknown',
  ],
  ['a client certificate is shown', () => ({ ca: [read('ca.crt')], cert: read('client.crt'), key: read('client.key') }), '200 up.example.com known'],
  ['a client certificate that cannot be read fails the call', () => ({ ca: [read('ca.crt')], cert: 'x', key: 'y' }), 'connect'],
  ['no SNI for an address', () => ({ ca: [read('ca.crt')], servername: undefined, verify: 'chain' }), '200 false unknown'],
]
test.each(rows)('%s', async (_, tls, expected) => {
  const pool = createHttp1Pool({ host: '127.0.0.1', port, tls: { ...base, ...tls() }, keepAlive: { idleMs: 1000 } })
  const answer = await pool.call(testRequest(), { connectMs: 20_000 }).response.then(
    async (response) => (await readResponse(response)).text,
    (error: unknown) => (error instanceof UpstreamError ? error.failure : String(error)),
  )
  expect(answer).toBe(expected)
  pool.close()
})
