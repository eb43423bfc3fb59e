import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { X509Certificate } from 'node:crypto'
import type { ClientIP, FrontendHTTP } from '#gen/config/types.ts'
import { HeaderList } from '../http/headers.ts'
import { trailersAfter } from '../http/trailers.ts'
import { isForwardingHeader, removeForwardingHeaders } from '../http/own-headers.ts'
import { respondWithError } from '../request/exchange/compose.ts'
import { ProxyError } from '../request/exchange/error.ts'
import { Exchange, type ClientCertificate, type Connection } from '../request/exchange/exchange.ts'
import { makeCertificate } from '../testing/certificates.ts'
import { testConnection, testRequest } from '../testing/exchange.ts'
import { compileForwarding, createRequestId } from './forwarding.ts'

const PEER = '10.0.0.1'
const UUID7 = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

type Fields = readonly (readonly [string, string])[]

function receive(http: FrontendHTTP | undefined, fields: Fields = [], connection: Partial<Connection> = {}): Exchange {
  const request = testRequest({ authority: 'shop.example:8080', headers: HeaderList.from(fields) })
  const exchange = new Exchange({ ...testConnection, remoteAddress: PEER, remotePort: 4000, localPort: 8443, ...connection }, request, 0)
  compileForwarding(http).receive(exchange)
  return exchange
}

const valuesOf = ({ request }: Exchange, name: string): string[] => request.headers.getAll(name)

/** The client that is found: `address` or `address:port`, or the code of the error. */
function clientOf(clientIP: ClientIP, values: readonly string[], peer = PEER): string {
  const name = clientIP.header ?? 'X-Forwarded-For'
  try {
    const { remoteAddress, remotePort, rawAddress } = receive(
      { clientIP },
      values.map((value) => [name, value] as const),
      { remoteAddress: peer },
    ).connection
    expect(rawAddress).toBe(remoteAddress === peer ? rawAddress : peer)
    return remotePort === 0 || remotePort === 4000 ? remoteAddress : `${remoteAddress} ${remotePort}`
  } catch (error) {
    return (error as ProxyError).code
  }
}

const oneHop: ClientIP = { trustedHops: 1 }
const ranges: ClientIP = { trustedCIDRs: ['10.0.0.0/8', 'fd00::/8'] }

describe('the client address', () => {
  test.each<[string, ClientIP, readonly string[], string]>([
    ['one hop', oneHop, ['192.0.2.9, 198.51.100.7'], '198.51.100.7'],
    ['two hops', { trustedHops: 2 }, ['192.0.2.9, 198.51.100.7, 10.0.0.2'], '198.51.100.7'],
    ['two hops in two lines', { trustedHops: 2 }, ['192.0.2.9, 198.51.100.7', '10.0.0.2'], '198.51.100.7'],
    ['fewer entries than hops', { trustedHops: 3 }, ['192.0.2.9, 198.51.100.7'], PEER],
    ['no header', oneHop, [], PEER],
    ['an empty header', oneHop, [''], PEER],
    ['empty elements', { trustedHops: 2 }, ['198.51.100.7,, ,10.0.0.2, '], '198.51.100.7'],
    ['ranges: the first from the right outside', ranges, ['192.0.2.9, 198.51.100.7, 10.3.0.1, 10.4.0.1'], '198.51.100.7'],
    ['ranges: all inside', ranges, ['10.3.0.1, 10.4.0.1'], '10.3.0.1'],
    ['ranges: no header', ranges, [], PEER],
    ['a port', oneHop, ['198.51.100.7:443'], '198.51.100.7 443'],
    ['IPv6', oneHop, ['2001:DB8:0::7'], '2001:db8::7'],
    ['IPv6 in brackets', oneHop, ['[2001:db8::7]'], '2001:db8::7'],
    ['IPv6 with a port', oneHop, ['[2001:db8::7]:443'], '2001:db8::7 443'],
    ['IPv4 in IPv6', oneHop, ['::ffff:198.51.100.7'], '198.51.100.7'],
    ['garbage to the left', oneHop, ['unknown, <script>, 198.51.100.7'], '198.51.100.7'],
    ['Forwarded', { header: 'Forwarded', trustedHops: 1 }, ['for=192.0.2.9, for="[2001:db8::7]:443";proto=https;by=x'], '2001:db8::7 443'],
    ['Forwarded with a hidden port', { header: 'forwarded', trustedHops: 1 }, ['For="198.51.100.7:_x"'], '198.51.100.7'],
    ['an open quote of a client', { header: 'Forwarded', trustedHops: 1 }, ['for="192.0.2.9, for=198.51.100.7'], '198.51.100.7'],
    ['another header', { header: 'CF-Connecting-IP' }, ['198.51.100.7'], '198.51.100.7'],
  ])('is found: %s', (_, rules, values, expected) => expect(clientOf(rules, values)).toBe(expected))

  const unusable = [
    'unknown',
    '_hidden',
    '',
    '256.1.1.1',
    '1.2.3',
    '01.2.3.4',
    '1.2.3.4:',
    '1.2.3.4:70000',
    '[1.2.3.4]',
    '[::1',
    '::1]',
    'fe80::1%eth0',
    '1.2.3.4 5',
  ]

  test.each(unusable)('is unknown if a trusted proxy sends "%s": 403, or the peer with FailOpen', (value) => {
    for (const rules of [{ header: 'X-Real-IP' }, ...(value === '' ? [] : [oneHop, ranges])]) {
      expect(clientOf(rules, [value])).toBe('CLIENT_ADDRESS')
      expect(clientOf({ ...rules, failureMode: 'FailOpen' }, [value])).toBe(PEER)
    }
  })

  test.each<[string, ClientIP, readonly string[]]>([
    ['a missing header of one address', { header: 'X-Real-IP' }, []],
    ['a repeated header of one address', { header: 'X-Real-IP' }, ['198.51.100.7', '198.51.100.7']],
    ['Forwarded without for', { header: 'Forwarded', trustedHops: 1 }, ['proto=https']],
    ['Forwarded with for twice', { header: 'Forwarded', trustedHops: 1 }, ['for=1.1.1.1;for=2.2.2.2']],
    ['Forwarded for unknown', { header: 'Forwarded', trustedHops: 1 }, ['for=unknown']],
    ['more proxies than there can be', ranges, [Array.from({ length: 100 }, () => '10.0.0.9').join(',')]],
  ])('is unknown with %s', (_, rules, values) => expect(clientOf(rules, values)).toBe('CLIENT_ADDRESS'))

  test('is that of a peer outside the ranges, whatever it sends, and what it sends is removed', () => {
    const clientIP: ClientIP = { header: 'X-Real-IP', trustedCIDRs: ['10.0.0.0/8'] }
    const exchange = receive({ clientIP }, [['x-real-ip', '1.1.1.1']], { remoteAddress: '192.0.2.1' })
    expect(exchange.connection.remoteAddress).toBe('192.0.2.1')
    expect(valuesOf(exchange, 'x-real-ip')).toEqual([])
    // Neither a 6to4 nor a NAT64 form of an address in the range is in it.
    for (const peer of ['2002:0a00:0001::1', '64:ff9b::10.0.0.1']) expect(clientOf(ranges, ['1.1.1.1'], peer)).toBe(peer)
  })

  test('does not depend on what a client writes before the entries of the proxies', () => {
    const text = fc
      .array(fc.oneof(fc.string(), fc.constantFrom('"', ',', ';', '[', ']', 'for=', '10.0.0.1', ' ')), { maxLength: 12 })
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(
        fc.array(text, { maxLength: 4 }),
        fc.ipV4(),
        fc.constantFrom(oneHop, ranges, { header: 'Forwarded', trustedHops: 1 }),
        (lines, client, rules) => {
          fc.pre(!client.startsWith('10.'))
          const own = rules.header === 'Forwarded' ? `for=${client}` : client
          const last = lines.at(-1) ?? ''
          expect(clientOf(rules, [...lines.slice(0, -1), `${last},${own}`])).toBe(client)
        },
      ),
    )
  })

  test('takes no time that grows with the list', () => {
    // Reading all of it would take seconds.
    const values = [Array.from({ length: 2_000_000 }, () => '1.1.1.1').join(',')]
    const start = performance.now()
    for (const rules of [oneHop, ranges]) expect(clientOf(rules, values)).toBe('1.1.1.1')
    expect(performance.now() - start).toBeLessThan(500)
  })
})

describe('forwarding headers', () => {
  const untrusted: readonly (readonly [string, FrontendHTTP | undefined, string])[] = [
    ['by default', undefined, PEER],
    ['outside the trusted ranges', { clientIP: ranges }, '192.0.2.1'],
  ]

  test.each(untrusted)('of a client are replaced %s, in every spelling', (_, http, peer) => {
    const name = fc
      .tuple(
        fc.constantFrom('x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-ssl', 'x-forwarded-user', 'forwarded', 'x-real-ip', 'x-request-id'),
        fc.array(fc.boolean()),
      )
      .map(([text, marks]) =>
        text
          .split('')
          .map((c, i) => (c === '-' && marks[i] === true ? '_' : c))
          .join(''),
      )
    fc.assert(
      fc.property(fc.array(name, { maxLength: 12 }), (names) => {
        const exchange = receive(http, [...names.map((one) => [one, 'forged'] as const), ['x-other', 'kept']], { remoteAddress: peer })
        const { requestId = '' } = exchange
        expect(requestId).toMatch(UUID7)
        const hop = ['x-forwarded-for', peer, 'x-forwarded-proto', 'http', 'x-forwarded-host', 'shop.example:8080', 'x-forwarded-port', '8443']
        expect(exchange.request.headers.raw).toEqual(['x-other', 'kept', ...hop, 'x-request-id', requestId])
      }),
    )
  })

  test('of a trusted proxy are kept, and the hop is appended', () => {
    const exchange = receive({ clientIP: oneHop }, [
      ['x-forwarded-for', '1.1.1.1'],
      ['x-forwarded-for', '2.2.2.2'],
      ['x-forwarded-proto', 'https'],
      ['x_forwarded_proto', 'forged'],
      ['forwarded', 'for=2.2.2.2'],
      ['x-request-id', 'of-the-proxy'],
    ])
    const kept = ['x-forwarded-for', '1.1.1.1', 'x-forwarded-for', `2.2.2.2, ${PEER}`, 'x-forwarded-proto', 'https', 'forwarded', `for=2.2.2.2, for=${PEER}`]
    const added = ['x-forwarded-host', 'shop.example:8080', 'x-forwarded-port', '8443', 'x-request-id', 'of-the-proxy']
    expect(exchange.request.headers.raw).toEqual([...kept, ...added])
    expect(exchange.requestId).toBe('of-the-proxy')
  })

  test.each([[['a', 'b']], [['a b']], [['']], [['x'.repeat(129)]], [['a\u00e4']]])('of a trusted proxy with the request ids %j get a new one', (ids) => {
    const exchange = receive(
      { clientIP: oneHop },
      ids.map((id) => ['x-request-id', id] as const),
    )
    expect(exchange.requestId).toMatch(UUID7)
    expect(valuesOf(exchange, 'x-request-id')).toEqual([exchange.requestId])
  })

  test('name an IPv6 peer as RFC 7239 demands, and https on TLS', () => {
    const tls = { sni: undefined, alpn: undefined, protocol: undefined, clientCertificate: undefined }
    const exchange = receive({ clientIP: oneHop }, [['forwarded', '']], { remoteAddress: '2001:db8::1', tls })
    expect([valuesOf(exchange, 'forwarded'), valuesOf(exchange, 'x-forwarded-proto')]).toEqual([['for="[2001:db8::1]"'], ['https']])
  })

  test('are removed in one pass, however many spellings there are', () => {
    // One pass for each spelling would take 10 s.
    const fields = Array.from({ length: 50_000 }, (_, i) => [`x_forwarded_${i.toString(36)}`, '1'] as const)
    const start = performance.now()
    for (const http of [undefined, { clientIP: oneHop }]) receive(http, fields)
    expect(performance.now() - start).toBeLessThan(2000)
  })

  test('are no trailers, and are not sent to model providers unless a policy set them', () => {
    const { request } = receive(undefined)
    const names = request.headers.raw.filter((_, i) => i % 2 === 0)
    expect(names.every(isForwardingHeader)).toBe(true)
    expect(trailersAfter(new HeaderList(), new HeaderList(names.flatMap((name) => [name, 'forged'])))).toBeUndefined()
    request.headers.set('x-forwarded-host', 'of-policy')
    removeForwardingHeaders(request.headers)
    expect(request.headers.raw).toEqual(['x-forwarded-host', 'of-policy'])
  })
})

describe('request ids', () => {
  test('are UUIDs of version 7 in the order of time', () => {
    const ids = Array.from({ length: 100 }, (_, i) => createRequestId(1_700_000_000_000 + i))
    for (const id of ids) expect(id).toMatch(UUID7)
    expect(ids.toSorted()).toEqual(ids)
    expect(Number.parseInt((ids[0] ?? '').replaceAll('-', '').slice(0, 12), 16)).toBe(1_700_000_000_000)
  })

  test('differ within a millisecond, also after the last value of the counter', () => {
    const ids = Array.from({ length: 10_000 }, () => createRequestId(1_800_000_000_000))
    for (const id of ids) expect(id).toMatch(UUID7)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('are in responses to requests that fail', () => {
    const exchange = receive(undefined)
    respondWithError(exchange, new ProxyError('ROUTE_NOT_FOUND'))
    expect(exchange.response?.headers.get('x-request-id')).toBe(exchange.requestId)
  })
})

describe('x-forwarded-client-cert', () => {
  const pem = makeCertificate({ name: 'a', names: ['DNS:a.example', 'URI:spiffe://td/ns/a/sa/b'] }).certificate
  const { fingerprint256 } = new X509Certificate(pem)
  const hash = `Hash=${fingerprint256.replaceAll(':', '').toLowerCase()}`
  const certificate: ClientCertificate = { pem, subject: 'CN="a,b"\n', subjectCn: 'a', issuer: '', subjectAltNames: [], chain: `${pem}${pem}` }
  const tls = { sni: undefined, alpn: undefined, protocol: undefined, clientCertificate: certificate }
  const sent = [
    ['x-forwarded-client-cert', 'Hash=00'],
    ['x_forwarded_client_cert', 'forged'],
  ] as const
  const xfcc = (policy: FrontendHTTP['xForwardedClientCert'], isVerified = true): string[] =>
    valuesOf(receive({ ...(policy && { xForwardedClientCert: policy }) }, sent, isVerified ? { tls } : {}), 'x-forwarded-client-cert')

  test('is removed by default and without a verified certificate', () => {
    expect([xfcc(undefined), xfcc({}), xfcc({ mode: 'Sanitize' })]).toEqual([[], [], []])
    for (const mode of ['AppendForward', 'SanitizeSet'] as const) expect(xfcc({ mode }, false)).toEqual([])
  })

  test('is set or appended, with the fields that the policy names', () => {
    expect(xfcc({ mode: 'SanitizeSet' })).toEqual([hash])
    expect(xfcc({ mode: 'AppendForward' })).toEqual([`Hash=00,${hash}`])
    expect(xfcc({ mode: 'SanitizeSet', certDetailsToAdd: ['Subject'] })).toEqual([`${hash};Subject="CN=\\"a,b\\"%0A"`])
    const [text = ''] = xfcc({ mode: 'SanitizeSet', certDetailsToAdd: ['Cert', 'Chain', 'URI', 'DNS'] })
    const [, cert = '', chain = ''] = /Cert="([^"]+)";Chain="([^"]+)"/.exec(text) ?? []
    expect([decodeURIComponent(cert), decodeURIComponent(chain)]).toEqual([pem, `${pem}${pem}`])
    expect(text).toMatch(/;URI=spiffe:\/\/td\/ns\/a\/sa\/b;DNS=a\.example$/)
  })
})
