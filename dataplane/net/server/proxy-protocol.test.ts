import { describe, expect, test } from '@jest/globals'
import { parseProxyHeader } from './proxy-protocol.ts'

const SIGNATURE = '0d0a0d0a000d0a515549540a'
const v2 = (command: string, family: string, body: string, length = body.length / 2): Buffer =>
  Buffer.from(SIGNATURE + command + family + length.toString(16).padStart(4, '0') + body, 'hex')
const IPV4 = '0a0000010a00000230390050'
const IPV6 = '20010db800000000000000000000000120010db800000000000000000000000230390050'
const MAPPED = '00000000000000000000ffff0a00000100000000000000000000ffff0a00000230390050'
const parse = (bytes: Buffer | string, version?: 'V1' | 'V2' | 'All') => parseProxyHeader(Buffer.from(bytes as Buffer), version)

describe('parseProxyHeader', () => {
  test.each<[string, Buffer | string, object | string]>([
    ['v1 TCP4', 'PROXY TCP4 10.0.0.1 10.0.0.2 12345 80\r\nGET', { length: 39, source: { address: '10.0.0.1', port: 12345 } }],
    ['v1 TCP6', 'PROXY TCP6 2001:DB8::1 2001:db8::2 1 65535\r\n', { length: 44, source: { address: '2001:db8::1', port: 1 } }],
    ['v1 TCP6 that holds IPv4', 'PROXY TCP6 ::ffff:10.0.0.1 ::1 1 2\r\n', { length: 36, source: { address: '10.0.0.1', port: 1 } }],
    ['v1 UNKNOWN keeps the socket address', 'PROXY UNKNOWN\r\n', { length: 15, source: undefined }],
    ['v1 UNKNOWN with more', 'PROXY UNKNOWN ffff::1 what ever\r\n', { length: 33, source: undefined }],
    ['v1 without its end', 'PROXY TCP4 10.0.0.1', 'more'],
    ['v1 without its end in 107 bytes', `PROXY UNKNOWN ${'x'.repeat(100)}`, 'bad'],
    ['v1 of 107 bytes', `PROXY UNKNOWN ${'x'.repeat(91)}\r\n`, { length: 107, source: undefined }],
    ['v1 with a bare LF', `PROXY TCP4 10.0.0.1 10.0.0.2 1 2\n${'x'.repeat(107)}`, 'bad'],
    ['v1 with a port too large', 'PROXY TCP4 10.0.0.1 10.0.0.2 65536 80\r\n', 'bad'],
    ['v1 with a port of leading zeros', 'PROXY TCP4 10.0.0.1 10.0.0.2 080 80\r\n', 'bad'],
    ['v1 with a field too many', 'PROXY TCP4 10.0.0.1 10.0.0.2 1 2 3\r\n', 'bad'],
    ['v1 with a field too few', 'PROXY TCP4 10.0.0.1 10.0.0.2 1\r\n', 'bad'],
    ['v1 with an IPv6 address in TCP4', 'PROXY TCP4 ::1 ::1 1 2\r\n', 'bad'],
    ['v1 with a zone', 'PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n', 'bad'],
    ['v1 with an unknown family', 'PROXY UDP4 10.0.0.1 10.0.0.2 1 2\r\n', 'bad'],
    ['v2 IPv4', v2('21', '11', IPV4), { length: 28, source: { address: '10.0.0.1', port: 12345 } }],
    ['v2 IPv6', v2('21', '21', IPV6), { length: 52, source: { address: '2001:db8::1', port: 12345 } }],
    ['v2 IPv6 that holds IPv4', v2('21', '21', MAPPED), { length: 52, source: { address: '10.0.0.1', port: 12345 } }],
    ['v2 with 512 bytes of TLVs', v2('21', '11', IPV4 + '00'.repeat(512)), { length: 540, source: { address: '10.0.0.1', port: 12345 } }],
    ['v2 with 513 bytes of TLVs', v2('21', '11', IPV4 + '00'.repeat(513)), 'bad'],
    ['v2 LOCAL', v2('20', '00', ''), { length: 16, source: undefined }],
    ['v2 LOCAL with addresses', v2('20', '11', IPV4), { length: 28, source: undefined }],
    ['v2 unspecified family', v2('21', '00', ''), { length: 16, source: undefined }],
    ['v2 UNIX', v2('21', '31', '00'.repeat(216)), { length: 232, source: undefined }],
    ['v2 datagrams', v2('21', '12', IPV4), { length: 28, source: undefined }],
    ['v2 whose addresses do not fit its length', v2('21', '11', '0a000001'), 'bad'],
    ['v2 of an unknown command', v2('22', '11', IPV4), 'bad'],
    ['version 3', v2('31', '11', IPV4), 'bad'],
    ['v2 of an unknown family', v2('21', '41', IPV4), 'bad'],
    ['v2 of an unknown transport', v2('21', '13', IPV4), 'bad'],
    ['v2 that announces more than it may', v2('21', '11', IPV4, 65_535), 'bad'],
    ['v2 incomplete', v2('21', '11', IPV4).subarray(0, 20), 'more'],
    ['nothing', '', 'more'],
    ['the start of either', '\r\n', 'more'],
    ['the start of a request', 'P', 'more'],
    ['a request', 'POST / HTTP/1.1\r\n', 'none'],
    ['TLS', Buffer.from([22, 3, 1]), 'none'],
  ])('parses %s', (_, bytes, expected) => expect(parse(bytes)).toEqual(expected))

  test.each<[string, Buffer | string, 'V1' | 'V2', string]>([
    ['v1 if v2 is configured', 'PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n', 'V2', 'none'],
    ['v2 if v1 is configured', v2('21', '11', IPV4), 'V1', 'none'],
  ])('finds no header in %s', (_, bytes, version, expected) => expect(parse(bytes, version)).toBe(expected))
})

describe('fields of a version 2 header', () => {
  const source = { address: '10.0.0.1', port: 12345 }
  const field = (type: string, value: string, length = value.length / 2): string => type + length.toString(16).padStart(4, '0') + value
  const withFields = (...fields: string[]): Buffer => v2('21', '11', IPV4 + fields.join(''))
  /** A header with a checksum, of which `change` alters the bytes after it was computed. */
  function withChecksum(change: (header: Buffer) => void = () => undefined, ...more: string[]): Buffer {
    const header = withFields(field('04', 'ff'), field('03', '00000000'), ...more)
    header.writeUInt32BE(crc32c(header), 35)
    change(header)
    return header
  }

  test('are checked by an implementation of CRC-32C that knows the check value of its catalogue', () => {
    expect(crc32c(Buffer.from('123456789'))).toBe(0xe306_9283)
  })

  test.each<[string, Buffer]>([
    ['a checksum', withChecksum()],
    ['a checksum before others', withChecksum(undefined, field('02', '61'))],
    ['an unknown type', withFields(field('ee', '00'))],
    ['an id of 128 bytes', withFields(field('05', '00'.repeat(128)))],
    ['TLS without fields of its own', withFields(field('20', '0100000000'))],
    ['TLS with fields', withFields(field('20', `0100000000${field('21', '544c53')}${field('22', '61')}`))],
  ])('may be %s', (_, header) => expect(parse(Buffer.concat([header, Buffer.from('GET')]))).toEqual({ length: header.length, source }))

  test.each<[string, Buffer]>([
    ['a wrong checksum', withChecksum((header) => void (header[35] = (header[35] ?? 0) ^ 1))],
    ['a checksum of another address', withChecksum((header) => void (header[16] = 11))],
    ['a checksum of other fields', withChecksum((header) => void (header[31] = 0))],
    ['a checksum of zero', withFields(field('03', '00000000'))],
    ['a short checksum', withFields(field('03', '0000'))],
    ['a long checksum', withFields(field('03', '0000000000'))],
    ['two checksums', withChecksum(undefined, field('03', '00000000'))],
    ['a length beyond the header', withFields(field('ee', '0000', 3))],
    ['a type without a length', withFields('ee')],
    ['half a length', withFields('ee00')],
    ['an id of 129 bytes', withFields(field('05', '00'.repeat(129)))],
    ['TLS without a result', withFields(field('20', '01000000'))],
    ['TLS with a field beyond it', withFields(field('20', `0100000000${field('21', '54', 2)}`))],
    ['TLS with a rest', withFields(field('20', '010000000021'))],
  ])('must not be %s', (_, header) => expect(parse(header)).toBe('bad'))
})

/** CRC-32C, by its definition as a division of polynomials. */
function crc32c(bytes: Buffer): number {
  let rest = 0xffff_ffffn
  for (const byte of bytes)
    for (let bit = 0; bit < 8; bit++) {
      const isOdd = ((rest ^ (BigInt(byte) >> BigInt(bit))) & 1n) === 1n
      rest = isOdd ? (rest >> 1n) ^ 0x82f6_3b78n : rest >> 1n
    }
  return Number(rest ^ 0xffff_ffffn)
}

/** A random generator with a seed, so that failures are reproducible. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

test('random bytes never throw, exceed no bounds, and parse equally byte by byte', () => {
  const random = randomOf(7)
  const seeds = [
    Buffer.from('PROXY TCP4 10.0.0.1 10.0.0.2 12345 80\r\n'),
    Buffer.from('PROXY TCP6 ::1 ::2 1 2\r\n'),
    v2('21', '11', IPV4),
    v2('21', '21', IPV6),
  ]
  for (let round = 0; round < 3000; round++) {
    const bytes = Buffer.concat([seeds[round % seeds.length] ?? Buffer.alloc(0), Buffer.from('rest')])
    for (let edits = Math.floor(random() * 4); edits > 0; edits--) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256)
    const whole = parse(bytes)
    if (typeof whole === 'object') expect(whole.length).toBeLessThanOrEqual(Math.min(bytes.length, 16 + 216 + 512))
    let verdict: ReturnType<typeof parse> = 'more'
    for (let end = 1; end <= bytes.length && verdict === 'more'; end++) verdict = parse(bytes.subarray(0, end))
    expect(verdict).toEqual(whole)
  }
})
