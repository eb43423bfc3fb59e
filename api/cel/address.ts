import { Opaque, types } from './values.ts'
import type { Type } from './values.ts'

const BITS = { 4: 32, 6: 128 } as const

/** An IPv4 or IPv6 address. Equal to its text, in any notation: `source.address == "::1"`. */
export class Ip extends Opaque {
  readonly family: 4 | 6
  readonly value: bigint

  constructor(family: 4 | 6, value: bigint) {
    super()
    this.family = family
    this.value = value
  }

  /** Undefined if the text is not an address. Rejects zones, leading zeros and IPv4 within IPv6, as the CEL library of Kubernetes does. */
  static parse(text: string): Ip | undefined {
    if (text.length > 45) return undefined
    if (!text.includes(':')) {
      const value = parseIpv4(text)
      return value === undefined ? undefined : new Ip(4, value)
    }
    const value = parseIpv6(text)
    return value === undefined || value >> 32n === 0xffffn ? undefined : new Ip(6, value)
  }

  /** Parses the address of a socket: maps `::ffff:10.0.0.1` to IPv4 and drops the zone. */
  static fromSocket(text: string): Ip | undefined {
    const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text)
    return Ip.parse(mapped?.[1] ?? text.replace(/%.*$/, ''))
  }

  get type(): Type {
    return types.ip
  }

  equals(other: unknown): boolean {
    const ip = typeof other === 'string' ? Ip.parse(other) : other
    return ip instanceof Ip && ip.family === this.family && ip.value === this.value
  }

  isIn(first: string, prefix: number): boolean {
    const other = Ip.parse(first)
    return other?.family === this.family && this.mask(prefix).value === other.value
  }

  /** The address with all but its first `prefix` bits cleared. */
  mask(prefix: number): Ip {
    const rest = BigInt(BITS[this.family] - prefix)
    return new Ip(this.family, (this.value >> rest) << rest)
  }

  /** Canonical text; for IPv6 as of RFC 5952. */
  override toString(): string {
    if (this.family === 4) return [24n, 16n, 8n, 0n].map((shift) => (this.value >> shift) & 0xffn).join('.')
    const groups = Array.from({ length: 8 }, (_, i) => ((this.value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16))
    let best = { start: 0, length: 1 }
    for (let start = 0; start < 8; start++) {
      let length = 0
      while (groups[start + length] === '0') length++
      if (length > best.length) best = { start, length }
    }
    if (best.length < 2) return groups.join(':')
    return `${groups.slice(0, best.start).join(':')}::${groups.slice(best.start + best.length).join(':')}`
  }
}

function parseIpv4(text: string): bigint | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)) return undefined
  return parts.reduce((value, part) => (value << 8n) | BigInt(part), 0n)
}

function parseIpv6(text: string): bigint | undefined {
  const halves = text.split('::')
  if (halves.length > 2 || text.includes('.')) return undefined
  const [head = [], tail] = halves.map((half) => (half === '' ? [] : half.split(':')))
  const missing = 8 - head.length - (tail?.length ?? 0)
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined
  const groups = tail === undefined ? head : [...head, ...Array.from({ length: missing }, () => '0'), ...tail]
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined
  return groups.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n)
}

/** An IP network, such as `10.0.0.0/8`. */
export class Cidr extends Opaque {
  /** As written, which may have bits beyond the prefix. */
  readonly ip: Ip
  readonly prefix: number

  constructor(ip: Ip, prefix: number) {
    super()
    this.ip = ip
    this.prefix = prefix
  }

  static parse(text: string): Cidr | undefined {
    const [address = '', length = '', rest] = text.split('/')
    const ip = Ip.parse(address)
    if (ip === undefined || rest !== undefined || !/^(?:0|[1-9]\d{0,2})$/.test(length) || Number(length) > BITS[ip.family]) return undefined
    return new Cidr(ip, Number(length))
  }

  get type(): Type {
    return types.cidr
  }

  equals(other: unknown): boolean {
    return other instanceof Cidr && other.prefix === this.prefix && other.ip.equals(this.ip)
  }

  contains(ip: Ip): boolean {
    return ip.family === this.ip.family && ip.mask(this.prefix).value === this.ip.mask(this.prefix).value
  }

  override toString(): string {
    return `${this.ip.toString()}/${this.prefix}`
  }
}

/** What tells clients apart by the address of a socket: an IPv6 client has a whole /64 network. */
export function clientNetwork(address: string): string {
  const ip = Ip.fromSocket(address)
  return ip?.family === 6 ? ip.mask(64).toString() : address
}
