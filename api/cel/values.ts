import { REDACTED } from '../names.ts'
import { CelError } from './error.ts'
import { Special } from './special.ts'

/**
 * A value during evaluation. CEL type, and what stands for it:
 *
 * | null, bool, string | themselves                         |
 * | int                | bigint                             |
 * | uint               | Uint                               |
 * | double             | number                             |
 * | bytes              | Uint8Array                         |
 * | list               | array                              |
 * | map                | CelMap, object, Map, HostMap       |
 * | others             | subclasses of Opaque               |
 *
 * An evaluation that failed gives a CelError instead.
 */
export type Value = unknown

/**
 * A value inside a list, a map, a variable or the host's data. The same, but a number is a JSON number: an int when it is
 * integral. A double of the language that is integral is stored as `Double`. Comparisons work on stored values.
 */
export type Stored = unknown

export class Uint extends Special {
  readonly value: bigint

  constructor(value: bigint) {
    super()
    this.value = value
  }
}

/** A double as stored. */
export class Double extends Special {
  readonly value: number

  constructor(value: number) {
    super()
    this.value = value
  }
}

/** Value of a type that only functions can look into. */
export abstract class Opaque extends Special {
  abstract readonly type: Type
  abstract equals(other: unknown): boolean
  /** What `string()` gives, and what the host receives. */
  abstract override toString(): string
}

export class Type extends Opaque {
  readonly name: string

  constructor(name: string) {
    super()
    this.name = name
  }

  get type(): Type {
    return types.type
  }

  equals(other: unknown): boolean {
    return other instanceof Type && other.name === this.name
  }

  override toString(): string {
    return this.name
  }
}

export const types = {
  bool: new Type('bool'),
  bytes: new Type('bytes'),
  cidr: new Type('net.CIDR'),
  double: new Type('double'),
  duration: new Type('google.protobuf.Duration'),
  int: new Type('int'),
  ip: new Type('net.IP'),
  list: new Type('list'),
  map: new Type('map'),
  null_type: new Type('null_type'),
  optional_type: new Type('optional_type'),
  secret: new Type('secret'),
  string: new Type('string'),
  timestamp: new Type('google.protobuf.Timestamp'),
  type: new Type('type'),
  uint: new Type('uint'),
} as const

/** An optional value; the one without a value is `none`. */
export class Optional extends Special {
  /** Stored; undefined for none. */
  readonly value: Stored

  constructor(value: Stored) {
    super()
    this.value = value
  }
}

export const none = new Optional(undefined)

/** Text that only `unredacted()` gives out: logs, bodies and headers made of it show `<redacted>`. */
export class Secret extends Opaque {
  readonly #text: string

  constructor(text: string) {
    super()
    this.#text = text
  }

  get type(): Type {
    return types.secret
  }

  reveal(): string {
    return this.#text
  }

  /** Comparing is no disclosure: rules may say `apiKey.key == "…"`. */
  equals(other: unknown): boolean {
    return (other instanceof Secret ? other.#text : other) === this.#text
  }

  override toString(): string {
    return REDACTED
  }

  toJSON(): string {
    return REDACTED
  }
}

/**
 * Data of the host that is computed when read: header lists, URIs, the request itself. Seen as a map with string keys
 * unless `text` makes it a string with methods.
 */
export abstract class HostMap extends Special {
  /** Stored value of a key; undefined when there is none. */
  abstract get(key: string): Stored
  abstract keys(): Iterable<string>
  /** Result of a method as a stored value; undefined when there is no such method. */
  call?(name: string, args: readonly Value[]): Stored
}

/** A string of the host that has methods of its own, such as `query()`. Everywhere else it is a string. */
export abstract class HostText extends Special {
  abstract readonly text: string
  /** As `HostMap.call`. */
  abstract call(name: string, args: readonly Value[]): Stored
}

export function load(stored: Stored): Value {
  if (typeof stored === 'number') return Number.isSafeInteger(stored) ? BigInt(stored) : stored
  if (typeof stored !== 'object' || stored === null) return stored === undefined ? null : stored
  if (stored instanceof Double) return stored.value
  return stored instanceof HostText ? stored.text : stored
}

export function store(value: Value): Stored {
  return typeof value === 'number' && Number.isSafeInteger(value) ? new Double(value) : value
}

export function isInt64(value: bigint): boolean {
  return BigInt.asIntN(64, value) === value
}

export function isUint64(value: bigint): boolean {
  return BigInt.asUintN(64, value) === value
}

export function isError(value: unknown): value is CelError {
  return value instanceof CelError
}
