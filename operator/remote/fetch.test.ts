import { afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { createServer as createTcpServer } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { makeAuthority, makeCertificate, type Certificate } from '../../e2e/harness/certificates.ts'
import type { RemoteRequest, RemoteTls } from '../model/translation.ts'
import { createLookup, describeForStatus, describeRefusal } from './address.ts'
import { describeSource } from './fetch.ts'
import { createKeySetFetch } from './key-set.ts'

const set = '{"keys":[{"kty":"EC","kid":"a"}]}'
const opened: (Server & { closeAllConnections?: () => void })[] = []
afterEach(async () => {
  for (const server of opened) server.closeAllConnections?.()
  await Promise.all(opened.splice(0).map((server) => new Promise((resolve) => server.close(resolve))))
})

let authority: Certificate
let leaf: Certificate
let client: Certificate
beforeAll(() => {
  authority = makeAuthority('ca')
  leaf = makeCertificate({ name: 'idp', hosts: ['idp.example'], issuer: authority })
  client = makeCertificate({ name: 'operator', issuer: authority })
})

async function listen(server: Server): Promise<number> {
  opened.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

const sourceOf = (port: number, more: Partial<RemoteRequest> = {}): RemoteRequest => ({
  id: 'id',
  url: { host: 'idp.example', port, path: '/keys' },
  endpoints: [{ address: '127.0.0.1', port }],
  cacheMs: 300_000,
  ...more,
})
const never = new AbortController().signal
const fetchOptions = { isLoopbackAllowed: true, times: { dialMs: 20_000, totalMs: 20_000 }, maxBytes: 1000 }
/** For what never comes. */
const impatient = { ...fetchOptions, times: { dialMs: 150, totalMs: 200 } }

describe('the response to a fetch', () => {
  test.each<[sentence: string, answer: RequestListener, outcome: string]>([
    ['is accepted if it is a key set', (_, response) => response.end(set), set],
    ['is normalized: no white space and no other members', (_, response) => response.end(`{"x": 1,\n "keys": [ {"kty": "EC", "kid": "a"} ] }`), set],
    ['is accepted if the set is empty', (_, response) => response.end('{"keys":[]}'), '{"keys":[]}'],
    ['is rejected if it is a redirect', (_, response) => response.writeHead(302, { location: '/other' }).end(set), 'answered 302; redirects are not followed'],
    ['is rejected if its status is 500', (_, response) => response.writeHead(500).end(set), 'answered 500'],
    ['is rejected if it is partial', (_, response) => response.writeHead(206).end(set), 'answered 206'],
    ['is rejected if it is not JSON', (_, response) => response.end('<html>'), 'the answer is not JSON'],
    ['is rejected without keys', (_, response) => response.end('{"key":[]}'), 'the answer is not a JSON Web Key Set'],
    ['is accepted with members that are no keys', (_, response) => response.end('{"keys":[{"kid":"a"}, null, 1]}'), '{"keys":[{"kid":"a"},null,1]}'],
    ['is rejected if it is null', (_, response) => response.end('null'), 'the answer is not a JSON Web Key Set'],
    [
      'is rejected if its content-length is too large',
      (_, response) => response.writeHead(200, { 'content-length': '1001' }).write('{'),
      'longer than 1000 bytes',
    ],
    [
      'too long in chunks',
      (_, response) => {
        for (let count = 0; count < 3; count += 1) response.write(' '.repeat(400))
        response.end(set)
      },
      'longer than 1000 bytes',
    ],
    ['is rejected if it comes too late', () => {}, 'not complete within 200 ms'],
    ['is rejected if its body does not end in time', (_, response) => response.write('{'), 'not complete within 200 ms'],
    [
      'a body that is cut',
      (_, response) => {
        response.writeHead(200, { 'content-length': '100' }).write('{"keys"')
        setTimeout(() => response.destroy(), 20)
      },
      'aborted',
    ],
  ])('%s', async (_, answer, outcome) => {
    const port = await listen(createServer(answer))
    const fetched = createKeySetFetch(outcome.includes('within 200 ms') ? impatient : fetchOptions)(sourceOf(port), 0, never).catch(
      (error: unknown) => (error as Error).message,
    )
    expect(await fetched).toContain(outcome)
  })

  test('the request of a fetch has the path unchanged and the host of the URL', async () => {
    const seen: unknown[] = []
    const server = createServer((request, response) => {
      seen.push([request.method, request.url, request.headers.host])
      response.end(set)
    })
    const port = await listen(server)
    await createKeySetFetch(fetchOptions)(sourceOf(port, { url: { host: 'idp.example', port: 80, path: '//evil.example/x?y' } }), 0, never)
    expect(seen).toEqual([['GET', '//evil.example/x?y', 'idp.example']])
  })

  test.each([
    ['a closed port', 'ECONNREFUSED'],
    ['no endpoint', 'idp.example has no endpoints'],
    ['a path with a space', 'unescaped characters'],
  ])('%s fails', async (what, message) => {
    // Nobody listens on port 1 of a machine that runs tests.
    const port = 1
    const source = sourceOf(port, what === 'no endpoint' ? { endpoints: [] } : what.includes('path') ? { url: { host: 'x', port, path: '/a b' } } : {})
    await expect(createKeySetFetch(fetchOptions)(source, 0, never)).rejects.toThrow(message)
  })

  test('each attempt takes the next endpoint', async () => {
    const port = await listen(createServer((_, response) => response.end(set)))
    const source = sourceOf(port, {
      endpoints: [
        { address: '127.0.0.1', port: 1 },
        { address: '127.0.0.1', port },
      ],
    })
    await expect(createKeySetFetch(fetchOptions)(source, 0, never)).rejects.toThrow('ECONNREFUSED')
    expect(await createKeySetFetch(fetchOptions)(source, 3, never)).toBe(set)
  })

  test('a stalled TLS handshake ends at the dial timeout', async () => {
    const port = await listen(createTcpServer((socket) => void socket.on('error', () => {}).resume()))
    await expect(createKeySetFetch(impatient)(sourceOf(port, { tls: { verify: 'none' } }), 0, never)).rejects.toThrow('not connected within 150 ms')
  })

  test('an abort ends the fetch', async () => {
    const abort = new AbortController()
    const port = await listen(createServer(() => abort.abort()))
    await expect(createKeySetFetch(fetchOptions)(sourceOf(port), 0, abort.signal)).rejects.toThrow('aborted')
  })
})

describe('TLS of a fetch', () => {
  test.each<[sentence: string, tls: () => RemoteTls, outcome: string]>([
    ['accepts a certificate of the configured CA for the host name', () => ({ ca: [authority.certificate], verify: 'full' }), 'good: idp.example'],
    ['rejects a certificate that the CAs of the system did not issue', () => ({ verify: 'full' }), 'self-signed certificate in certificate chain'],
    ['sends and verifies a configured server name', () => ({ ca: [authority.certificate], servername: 'other.example', verify: 'full' }), 'does not match'],
    ['does not verify names in mode chain', () => ({ ca: [authority.certificate], servername: 'other.example', verify: 'chain' }), 'good: other.example'],
    ['verifies the chain in mode chain', () => ({ verify: 'chain' }), 'self-signed certificate in certificate chain'],
    ['verifies nothing in mode none', () => ({ verify: 'none' }), 'good: idp.example'],
    [
      'accepts a certificate with one of the configured names',
      () => ({ ca: [authority.certificate], servername: 'other.example', subjectAltNames: [{ type: 'Hostname', value: 'idp.example' }], verify: 'full' }),
      'good: other.example',
    ],
    [
      'rejects a certificate with none of the configured names',
      () => ({ ca: [authority.certificate], subjectAltNames: [{ type: 'URI', value: 'spiffe://td/idp' }], verify: 'full' }),
      'carries none of the names',
    ],
    [
      'presents the client certificate',
      () => ({ ca: [authority.certificate], certificate: client.certificate, privateKey: client.privateKey, verify: 'full' }),
      'good: idp.example operator',
    ],
  ])('%s', async (_, tls, outcome) => {
    const options = { cert: leaf.certificate, key: leaf.privateKey, ca: authority.certificate, requestCert: true, rejectUnauthorized: false }
    const seen: string[] = []
    const server = createTlsServer(options, (request, response) => {
      const socket = request.socket as TLSSocket
      const subject: unknown = socket.getPeerCertificate().subject?.CN
      seen.push(`${String(socket.servername)}${typeof subject === 'string' ? ` ${subject}` : ''}`)
      response.end(set)
    })
    const port = await listen(server)
    const result = await createKeySetFetch(fetchOptions)(sourceOf(port, { tls: tls() }), 0, never).then(
      () => `good: ${seen.join()}`,
      (error: unknown) => (error as Error).message,
    )
    expect(result).toContain(outcome)
  })
})

describe('the address of a key set', () => {
  test.each([
    ['169.254.169.254', false],
    ['::ffff:169.254.169.254', false],
    ['::ffff:a9fe:a9fe', false],
    ['64:ff9b::a9fe:a9fe', false],
    ['fe80::1', false],
    ['febf::1%eth0', false],
    ['fd00:ec2::254', false],
    ['100.100.100.200', false],
    ['0.0.0.0', false],
    ['::', false],
    ['239.1.1.1', false],
    ['255.255.255.255', false],
    ['ff02::1', false],
    ['127.0.0.1', true],
    ['127.9.9.9', true],
    ['::1', true],
    ['::ffff:127.0.0.1', true],
  ])('%s is rejected, in directory mode only if it is not loopback', (address, isLoopback) => {
    expect(describeRefusal(address, 443, false)).toContain(address)
    expect(describeRefusal(address, 443, true) === undefined).toBe(isLoopback)
  })

  test.each(['10.0.0.1', '192.168.1.1', '8.8.8.8', '2001:db8::1', 'fd00::1', '169.253.255.255', '64:ff9b::a00:1'])('%s is accepted', (address) =>
    expect(describeRefusal(address, 443, false)).toBeUndefined(),
  )

  test.each<[sentence: string, source: Partial<RemoteRequest>, message: string]>([
    ['an endpoint', { endpoints: [{ address: '169.254.169.254', port: 80 }] }, '169.254.169.254 is a metadata address'],
    ['a host that is an address', { url: { host: '::1', port: 80, path: '/' } }, '::1 is a loopback'],
    ['a host in another spelling of an address', { url: { host: '2130706433', port: 80, path: '/' } }, '2130706433: 127.0.0.1 is a loopback'],
    ['a name', { url: { host: 'localhost', port: 80, path: '/' } }, 'localhost: '],
  ])('%s is checked before anything is sent', async (_, more, message) => {
    const { endpoints: _endpoints, ...plain } = sourceOf(80)
    await expect(createKeySetFetch({ ...fetchOptions, isLoopbackAllowed: false })({ ...plain, ...more }, 0, never)).rejects.toThrow(message)
  })

  test.each([true, false])('a name with permitted addresses resolves (all: %s)', async (all) => {
    const found = await new Promise((resolve, reject) => {
      createLookup(443, true)('localhost', { all, family: 0 }, (error, address) => (error ? reject(error) : resolve(address)))
    })
    expect(JSON.stringify(found)).toMatch(all ? /^\[\{"address":/ : /^"(127|::1)/)
  })
})

describe('a status tells nothing apart about a server that sends no response', () => {
  const remote = (more: Partial<RemoteRequest>) => (port: number) => {
    const { endpoints: _, ...source } = sourceOf(port)
    return { ...source, ...more, url: { host: '127.0.0.1', port, path: '/', ...more.url } }
  }
  const named = (host: string, port = 80) => remote({ url: { host, port, path: '/' } })
  const tls = (settings: () => RemoteTls) => (port: number) => remote({ tls: settings() })(port)
  const plain = () => createTcpServer((socket) => void socket.on('error', () => {}).end('220 mail.example\r\n', () => socket.destroy()))
  const silent = () => createTcpServer((socket) => void socket.on('error', () => {}).resume())
  const reset = () => createTcpServer((socket) => void socket.on('error', () => {}).resetAndDestroy())
  const secure = () => createTlsServer({ cert: leaf.certificate, key: leaf.privateKey }, (_, response) => response.end(set))

  test.each<[what: string, server: (() => Server) | undefined, source: (port: number) => RemoteRequest, isLoopbackAllowed?: boolean]>([
    ['a closed port', undefined, remote({})],
    ['a closed port of an endpoint', undefined, (port) => sourceOf(port)],
    ['a name without addresses', undefined, named('nothing.invalid')],
    ['a name of a refused address', undefined, named('localhost'), false],
    ['another spelling of a refused address', undefined, named('2130706433'), false],
    ['a server with another protocol', plain, remote({})],
    ['a server that is silent', silent, remote({})],
    ['a server that resets connections', reset, remote({})],
    ['TLS with a server without TLS', plain, tls(() => ({ verify: 'none' }))],
    ['TLS with a silent server', silent, tls(() => ({ verify: 'none' }))],
    ['TLS with a closed port', undefined, tls(() => ({ verify: 'none' }))],
    ['a certificate of an unknown CA', secure, tls(() => ({ verify: 'full' }))],
    ['a certificate of another name', secure, tls(() => ({ ca: [authority.certificate], servername: 'other.example', verify: 'full' }))],
    [
      'a certificate without the wanted names',
      secure,
      tls(() => ({ ca: [authority.certificate], subjectAltNames: [{ type: 'URI', value: 'spiffe://a/b' }], verify: 'full' })),
    ],
    ['a request without TLS to a TLS server', secure, remote({})],
  ])('%s', async (_, server, source, isLoopbackAllowed = true) => {
    const port = server === undefined ? 1 : await listen(server())
    const error: unknown = await createKeySetFetch({ ...impatient, isLoopbackAllowed })(source(port), 0, never).catch((each: unknown) => each)
    expect(error).toBeInstanceOf(Error)
    expect(describeForStatus(error)).toBe('the server cannot be reached; the log of the operator has the cause')
    // The log tells them apart.
    expect((error as Error).message).not.toBe(describeForStatus(error))
  })

  test.each([
    'EACCES',
    'ECONNREFUSED',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'ETIMEDOUT',
    'EADDRNOTAVAIL',
    'ECONNRESET',
    'HPE_INVALID_CONSTANT',
    'ERR_SSL_WRONG_VERSION_NUMBER',
  ])('an error with the code %s', (code) =>
    expect(describeForStatus(Object.assign(new Error(`connect ${code} 10.0.0.1:22`), { code }))).toMatch(/^the server cannot be reached/),
  )

  test('but names a refused address that the user wrote', async () => {
    const source = { id: 'id', cacheMs: 1, url: { host: '169.254.169.254', port: 80, path: '/' } }
    const error: unknown = await createKeySetFetch(fetchOptions)(source, 0, never).catch((each: unknown) => each)
    expect(describeForStatus(error)).toBe('169.254.169.254 is a metadata address; nothing is fetched from there')
  })
})

test.each<[expected: string, url: RemoteRequest['url'], tls: RemoteTls | undefined]>([
  ['http://idp.example/keys', { host: 'idp.example', port: 80, path: '/keys' }, undefined],
  ['https://idp.example/keys', { host: 'idp.example', port: 443, path: '/keys' }, { verify: 'full' }],
  ['http://[2001:db8::1]:8080/', { host: '2001:db8::1', port: 8080, path: '/' }, undefined],
])('a source is described as %s', (expected, url, tls) => {
  expect(describeSource({ id: 'id', url, cacheMs: 1, ...(tls && { tls }) })).toBe(expected)
})
