import { REDACTED } from '../names.ts'
import { CelError } from './error.ts'
import { Special } from './special.ts'

/**
 * A value during evaluation. Each CEL type and its representation:
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
 * The result of a failed evaluation is a CelError.
 */
export type Value = unknown

/**
 * A value inside a list, a map, a variable or data of the host. The same as `Value`, except that a number is a JSON number:
 * an int if it is integral. An integral double is stored as `Double`. Comparisons accept stored values.
 */
export type Stored = unknown

/** An unsigned 64-bit integer. */
export class Uint extends Special {
  readonly value: bigint

  constructor(value: bigint) {
    super()
    this.value = value
  }
}

/** An integral double, as stored. */
export class Double extends Special {
  readonly value: number

  constructor(value: number) {
    super()
    this.value = value
  }
}

/** Base class of types that have no members; only functions read them. */
export abstract class Opaque extends Special {
  abstract readonly type: Type
  abstract equals(other: unknown): boolean
  /** The result of `string()`, and the form that the host receives. */
  abstract override toString(): string
}

/** A type as a value: `type(1) == int`. */
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

/** The types of the language. */
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

/** An optional value. */
export class Optional extends Special {
  /** Stored; undefined for none. */
  readonly value: Stored

  constructor(value: Stored) {
    super()
    this.value = value
  }
}

/** The optional without a value. */
export const none = new Optional(undefined)

/** Text that only `unredacted()` reveals; everywhere else it is `<redacted>`. */
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

  /** A comparison discloses nothing, so rules may use `apiKey.key == "…"`. */
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
 * Data of the host that is computed when it is read, such as header lists and the request itself. Expressions see a map with
 * string keys.
 */
export abstract class HostMap extends Special {
  /** Stored value of a key; undefined if there is none. */
  abstract get(key: string): Stored
  abstract keys(): Iterable<string>
  /** Result of a method as a stored value; undefined if the method does not exist. */
  call?(name: string, args: readonly Value[]): Stored
}

/** A string of the host with additional methods, such as `query()`. In all other respects it is a string. */
export abstract class HostText extends Special {
  abstract readonly text: string
  /** As `HostMap.call`. */
  abstract call(name: string, args: readonly Value[]): Stored
}

/** Converts a stored value to its form during evaluation. */
export function load(stored: Stored): Value {
  if (typeof stored === 'number') return Number.isSafeInteger(stored) ? BigInt(stored) : stored
  if (typeof stored !== 'object' || stored === null) return stored === undefined ? null : stored
  if (stored instanceof Double) return stored.value
  return stored instanceof HostText ? stored.text : stored
}

/** Converts an evaluated value to its stored form. */
export function store(value: Value): Stored {
  return typeof value === 'number' && Number.isSafeInteger(value) ? new Double(value) : value
}

/** Whether the value fits into a signed 64-bit integer. */
export function isInt64(value: bigint): boolean {
  return BigInt.asIntN(64, value) === value
}

/** Whether the value fits into an unsigned 64-bit integer. */
export function isUint64(value: bigint): boolean {
  return BigInt.asUintN(64, value) === value
}

export function isError(value: unknown): value is CelError {
  return value instanceof CelError
}
