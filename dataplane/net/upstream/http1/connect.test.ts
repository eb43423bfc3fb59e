import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { makeAuthority, makeCertificate } from '../../../testing/certificates.ts'
import { createHttp1Pool } from './pool.ts'
import { readResponse, testRequest } from './testing.ts'
import { failureClass } from '../failure-class.ts'
import { UpstreamError, type UpstreamTls } from '../types.ts'

const authority = makeAuthority('ca')
const otherAuthority = makeAuthority('other')
const names = ['DNS:up.example.com', 'DNS:*.wild.example.com', 'URI:spiffe://td/ns/a/sa/b']
const serverCertificate = makeCertificate({ name: 'server', names, authority })
const clientCertificate = makeCertificate({ name: 'client', authority })

let server: Server
let port = 0
beforeAll(async () => {
  server = createServer(
    { key: serverCertificate.privateKey, cert: serverCertificate.certificate, ca: authority.certificate, requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      const socket = request.socket as TLSSocket
      response.end(`${String(socket.servername)} ${socket.authorized ? 'known' : 'unknown'}`)
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
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
  ['the name of the server is in the certificate', () => ({ ca: [authority.certificate] }), '200 up.example.com unknown'],
  ['the name of the server is not in the certificate', () => ({ ca: [authority.certificate], servername: 'no.example.com' }), 'connect: TLS handshake failed'],
  ['another authority signed it', () => ({ ca: [otherAuthority.certificate] }), 'connect: TLS handshake failed'],
  ['one of two authorities signed it', () => ({ ca: [otherAuthority.certificate, authority.certificate] }), '200 up.example.com unknown'],
  ['the system does not know the authority', () => ({}), 'connect: TLS handshake failed'],
  ['only the chain counts', () => ({ ca: [authority.certificate], servername: 'no.example.com', verify: 'chain' }), '200 no.example.com unknown'],
  ['only the chain counts, and it is wrong', () => ({ ca: [otherAuthority.certificate], verify: 'chain' }), 'connect: TLS handshake failed'],
  ['nothing counts', () => ({ ca: [otherAuthority.certificate], servername: 'no.example.com', verify: 'none' }), '200 no.example.com unknown'],
  [
    'a configured URI is in the certificate',
    () => ({ ca: [authority.certificate], servername: 'sni', subjectAltNames: uri('spiffe://td/ns/a/sa/b') }),
    '200 sni unknown',
  ],
  [
    'a configured URI is not in the certificate',
    () => ({ ca: [authority.certificate], subjectAltNames: uri('spiffe://td/ns/a/sa/c') }),
    'connect: TLS handshake failed',
  ],
  [
    'a configured hostname matches a wildcard',
    () => ({ ca: [authority.certificate], servername: 'sni', subjectAltNames: host('x.wild.example.com') }),
    '200 sni unknown',
  ],
  [
    'a configured hostname is not in the certificate, though the SNI is',
    () => ({ ca: [authority.certificate], subjectAltNames: host('no.example.com') }),
    'connect: TLS handshake failed',
  ],
  [
    'one of several configured names is enough',
    () => ({ ca: [authority.certificate], subjectAltNames: [...(host('no.example.com') ?? []), ...(uri('spiffe://td/ns/a/sa/b') ?? [])] }),
    '200 up.example.com unknown',
  ],
  [
    'a client certificate is shown',
    () => ({ ca: [authority.certificate], cert: clientCertificate.certificate, key: clientCertificate.privateKey }),
    '200 up.example.com known',
  ],
  ['a client certificate that cannot be read fails the call', () => ({ ca: [authority.certificate], cert: 'x', key: 'y' }), 'connect: TLS handshake failed'],
  ['no SNI for an address', () => ({ ca: [authority.certificate], servername: undefined, verify: 'chain' }), '200 false unknown'],
]
test.each(rows)('%s', async (_, tls, expected) => {
  const pool = createHttp1Pool({ host: '127.0.0.1', port, tls: { ...base, ...tls() }, keepAlive: { idleMs: 1000 } })
  const answer = await pool.call(testRequest(), { connectMs: 20_000 }).response.then(
    async (response) => (await readResponse(response)).text,
    (error: unknown) => (error instanceof UpstreamError ? `${error.failure}: ${failureClass(error)}` : String(error)),
  )
  expect(answer).toBe(expected)
  pool.close()
})
