import { Opaque, types } from './values.ts'
import type { Type } from './values.ts'

const SECOND = 1_000_000_000n
/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999999Z. */
const MIN_TIMESTAMP = -62_135_596_800n * SECOND
const MAX_TIMESTAMP = 253_402_300_800n * SECOND - 1n

/** A point in time, in nanoseconds since 1970. */
export class Timestamp extends Opaque {
  readonly nanos: bigint

  constructor(nanos: bigint) {
    super()
    this.nanos = nanos
  }

  /** Undefined outside the years 1 to 9999. */
  static of(nanos: bigint): Timestamp | undefined {
    return nanos < MIN_TIMESTAMP || nanos > MAX_TIMESTAMP ? undefined : new Timestamp(nanos)
  }

  static fromMs(ms: number): Timestamp {
    return new Timestamp(BigInt(Math.round(ms * 1000)) * 1000n)
  }

  /** Parses RFC 3339; undefined if the text is invalid or out of range. */
  static parse(text: string): Timestamp | undefined {
    const found = RFC3339.exec(text)
    if (found === null) return undefined
    const [, date = '', time = '', fraction = '', zone = ''] = found
    const ms = Date.parse(`${date}T${time}Z`)
    if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== date) return undefined
    const offset = parseOffset(zone)
    if (offset === undefined) return undefined
    return Timestamp.of(BigInt(ms - offset * 60_000) * 1_000_000n + BigInt(fraction.padEnd(9, '0')))
  }

  get type(): Type {
    return types.timestamp
  }

  /** Whole milliseconds since 1970, rounded down. */
  get ms(): number {
    return Number((this.nanos - floorMod(this.nanos, 1_000_000n)) / 1_000_000n)
  }

  get seconds(): bigint {
    return (this.nanos - floorMod(this.nanos, SECOND)) / SECOND
  }

  equals(other: unknown): boolean {
    return other instanceof Timestamp && other.nanos === this.nanos
  }

  override toString(): string {
    const fraction = floorMod(this.nanos, SECOND)
    return `${new Date(Number(this.seconds) * 1000).toISOString().slice(0, 19)}${formatFraction(fraction)}Z`
  }
}

const RFC3339 = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})$/

/** Minutes east of UTC of `Z`, `+01:30`, `01:30`, `-08:00`; undefined for anything else. */
export function parseOffset(zone: string): number | undefined {
  if (zone === 'Z' || zone === 'z') return 0
  const found = /^([+-]?)(\d{1,2}):(\d{2})$/.exec(zone)
  if (found === null || Number(found[2]) > 23 || Number(found[3]) > 59) return undefined
  const minutes = Number(found[2]) * 60 + Number(found[3])
  return found[1] === '-' ? -minutes : minutes
}

const UNITS: Readonly<Record<string, bigint>> = {
  h: 3600n * SECOND,
  m: 60n * SECOND,
  s: SECOND,
  ms: 1_000_000n,
  us: 1000n,
  µs: 1000n,
  ns: 1n,
}
const MAX_DURATION = 2n ** 63n - 1n

/** A span of time of at most 292 years: as in other implementations, its nanoseconds fit into 64 bits. */
export class Duration extends Opaque {
  readonly nanos: bigint

  constructor(nanos: bigint) {
    super()
    this.nanos = nanos
  }

  /** Undefined if the nanoseconds do not fit into 64 bits. */
  static of(nanos: bigint): Duration | undefined {
    return nanos > MAX_DURATION || nanos < -MAX_DURATION - 1n ? undefined : new Duration(nanos)
  }

  static fromMs(ms: number): Duration {
    return new Duration(BigInt(Math.round(ms * 1000)) * 1000n)
  }

  /** Go's notation: `-1h2m3.5s`, `100us`, `0`. */
  static parse(text: string): Duration | undefined {
    if (text.length > 64) return undefined
    const sign = /^[+-]/.exec(text)?.[0] ?? ''
    const rest = text.slice(sign.length)
    if (rest === '0') return new Duration(0n)
    if (!/^(?:(?:\d+\.?\d*|\.\d+)(?:h|ms|m|s|us|µs|ns))+$/.test(rest)) return undefined
    let total = 0n
    for (const [, whole = '', fraction = '', unit = ''] of rest.matchAll(/(\d*)\.?(\d*)(h|ms|m|s|us|µs|ns)/g)) {
      const size = UNITS[unit] ?? 0n
      total += BigInt(whole || '0') * size + (BigInt(fraction || '0') * size) / 10n ** BigInt(fraction.length)
    }
    return Duration.of(sign === '-' ? -total : total)
  }

  get type(): Type {
    return types.duration
  }

  /** May have a fraction. */
  get ms(): number {
    return Number(this.nanos) / 1e6
  }

  equals(other: unknown): boolean {
    return other instanceof Duration && other.nanos === this.nanos
  }

  /** Seconds with as many decimals as needed: `1.5s`. */
  override toString(): string {
    const size = this.nanos < 0n ? -this.nanos : this.nanos
    const fraction = (size % SECOND).toString().padStart(9, '0').replace(/0+$/, '')
    return `${this.nanos < 0n ? '-' : ''}${size / SECOND}${fraction ? `.${fraction}` : ''}s`
  }
}

/** A fraction of a second as RFC 3339 writes it: a dot and as few digits as needed, or nothing. */
function formatFraction(nanos: bigint): string {
  if (nanos === 0n) return ''
  return `.${nanos.toString().padStart(9, '0').replace(/0+$/, '')}`
}

function floorMod(a: bigint, b: bigint): bigint {
  const rest = a % b
  return rest < 0n ? rest + b : rest
}
