import { isIPv4, isIPv6 } from 'node:net'

/** Settings of the header that a load balancer sends first on a connection (PROXY protocol specification, versions 1 and 2). */
export interface ProxyProtocolSettings {
  readonly version: 'V1' | 'V2' | 'All'
  /** Strict closes connections without a header; Optional serves them. */
  readonly mode: 'Strict' | 'Optional'
  /** Timeout of the header in milliseconds; default 5000. */
  readonly waitMs?: number
}

/** A header: its length and the client's address. Without an address (LOCAL, UNKNOWN, other families) that of the socket applies. */
export interface ProxyHeader {
  readonly length: number
  readonly source: { readonly address: string; readonly port: number } | undefined
}

/** Default of `waitMs`. */
export const PROXY_HEADER_MS = 5000

const SIGNATURE = Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a])
const WORD = Buffer.from('PROXY ')
/** Longest version 1 line, CRLF included (section 2.1). */
const V1_MAX = 107
/** Maximum bytes of additional fields after the addresses (traffic.md §10). */
const TLV_MAX = 512
/** Length of the address block by the high half of the family byte (section 2.2): unspecified, IPv4, IPv6, UNIX. */
const blockLengths = [0, 12, 36, 216]

/** Parses the header at the start of `bytes`. `none`: there is no header; `more`: more bytes are needed; `bad`: the header is invalid. */
export function parseProxyHeader(bytes: Buffer, version: ProxyProtocolSettings['version'] = 'All'): ProxyHeader | 'none' | 'more' | 'bad' {
  if (bytes.length === 0) return 'more'
  if (version !== 'V1' && startsLike(bytes, SIGNATURE)) return bytes.length < 16 ? 'more' : parseV2(bytes)
  if (version !== 'V2' && startsLike(bytes, WORD)) return bytes.length < WORD.length ? 'more' : parseV1(bytes)
  return 'none'
}

function startsLike(bytes: Buffer, expected: Buffer): boolean {
  const length = Math.min(bytes.length, expected.length)
  return bytes.compare(expected, 0, length, 0, length) === 0
}

function parseV1(bytes: Buffer): ProxyHeader | 'more' | 'bad' {
  const end = bytes.subarray(0, V1_MAX).indexOf('\r\n')
  if (end === -1) return bytes.length < V1_MAX ? 'more' : 'bad'
  const [, family, source = '', destination = '', sourcePort = '', destinationPort = '', ...more] = bytes.toString('latin1', 0, end).split(' ')
  // Ignore what follows UNKNOWN (section 2.1).
  if (family === 'UNKNOWN') return { length: end + 2, source: undefined }
  const isAddress = family === 'TCP4' ? isIPv4 : family === 'TCP6' ? isPlainIPv6 : undefined
  const port = parsePort(sourcePort)
  if (isAddress === undefined || more.length > 0 || !isAddress(source) || !isAddress(destination)) return 'bad'
  if (port === undefined || parsePort(destinationPort) === undefined) return 'bad'
  return { length: end + 2, source: { address: family === 'TCP6' ? canonicalIPv6(source) : source, port } }
}

function parseV2(bytes: Buffer): ProxyHeader | 'more' | 'bad' {
  const command = bytes.readUInt8(12)
  const family = bytes.readUInt8(13)
  const length = bytes.readUInt16BE(14)
  const block = blockLengths[family >> 4]
  // Version 2, LOCAL or PROXY, a known family and transport.
  if ((command !== 0x20 && command !== 0x21) || block === undefined || (family & 0x0f) > 2) return 'bad'
  const isLocal = command === 0x20
  // Skip the addresses of a LOCAL header.
  if (length > TLV_MAX + (isLocal ? 216 : block) || (!isLocal && length < block)) return 'bad'
  if (bytes.length < 16 + length) return 'more'
  if (!isLocal && block > 0 && !hasValidFields(bytes.subarray(0, 16 + length), 16 + block)) return 'bad'
  return { length: 16 + length, source: isLocal ? undefined : sourceOf(bytes, family) }
}

const CRC32C = 0x03
const UNIQUE_ID = 0x05
const SSL = 0x20
/** Longest PP2_TYPE_UNIQUE_ID (section 2.2.5). */
const UNIQUE_ID_MAX = 128

/** Whether the additional fields are complete, known ones have their form, and the checksum, if any, is that of the header (section 2.2.3). */
function hasValidFields(header: Buffer, from: number): boolean {
  let hasChecksum = false
  for (let at = from; at < header.length;) {
    // Too short for a field: padding.
    if (header.length - at < 3) return header.subarray(at).every((byte) => byte === 0)
    const length = header.readUInt16BE(at + 1)
    const start = at + 3
    if (start + length > header.length) return false
    switch (header.readUInt8(at)) {
      case CRC32C:
        if (hasChecksum || length !== 4 || header.readUInt32BE(start) !== checksumOf(header, start)) return false
        hasChecksum = true
        break
      case UNIQUE_ID:
        if (length > UNIQUE_ID_MAX) return false
        break
      case SSL:
        if (!isSslField(header.subarray(start, start + length))) return false
        break
    }
    at = start + length
  }
  return true
}

/** PP2_TYPE_SSL: flags, the result of the verification, and fields of its own (section 2.2.6). */
function isSslField(value: Buffer): boolean {
  if (value.length < 5) return false
  let at = 5
  while (value.length - at >= 3) at += 3 + value.readUInt16BE(at + 1)
  return at === value.length
}

/** CRC-32C of a header whose checksum field at `field` counts as zero. */
function checksumOf(header: Buffer, field: number): number {
  let crc = 0xffff_ffff
  for (let at = 0; at < header.length; at++) {
    crc ^= at >= field && at < field + 4 ? 0 : (header[at] ?? 0)
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f6_3b78 : 0)
  }
  return ~crc >>> 0
}

function sourceOf(bytes: Buffer, family: number): ProxyHeader['source'] {
  if (family === 0x11) return { address: bytes.subarray(16, 20).join('.'), port: bytes.readUInt16BE(24) }
  if (family !== 0x21) return undefined
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(16 + 2 * i).toString(16))
  return { address: canonicalIPv6(groups.join(':')), port: bytes.readUInt16BE(48) }
}

const isPlainIPv6 = (text: string): boolean => isIPv6(text) && !text.includes('%')

/** The form of sockets, with IPv4-mapped addresses as IPv4, so that rules see each address in one form. */
function canonicalIPv6(address: string): string {
  const short = new URL(`http://[${address}]/`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(short)
  if (mapped === null) return short
  const [high, low] = [Number.parseInt(mapped[1] ?? '', 16), Number.parseInt(mapped[2] ?? '', 16)]
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

function parsePort(text: string): number | undefined {
  return /^(?:0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined
}
