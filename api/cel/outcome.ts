import { toText } from './convert.ts'
import { CelError } from './error.ts'
import { Flattened, toHost } from './host.ts'
import { isMap } from './map.ts'
import type { Program } from './program.ts'
import { Duration, Timestamp } from './time.ts'
import { Uint } from './values.ts'
import type { Value } from './values.ts'

// What a failed evaluation means depends on the use (traffic.md §9): undefined here stands for "removed", "omitted",
// "dropped" or `unknown`, as the caller has it; conditions are false.

/** Conditions: an error, and anything but true, is false. */
export function evalBool(program: Program, context: object): boolean {
  return program.eval(context) === true
}

/** As three: for rules that must tell an error from false. */
export function evalCondition(program: Program, context: object): boolean | CelError {
  const value = program.eval(context)
  return typeof value === 'boolean' || value instanceof CelError ? value : new CelError('no_such_overload', 'the condition is no bool', 0)
}

/** The text of a header, descriptor or label: what `string()` gives; lists and maps as JSON; undefined for null and failures. */
export function evalString(program: Program, context: object): string | undefined {
  const value = program.eval(context)
  if (value === null || value instanceof CelError) return undefined
  const text = toText(value)
  if (typeof text === 'string') return text
  if (!Array.isArray(value) && !isMap(value)) return undefined
  return JSON.stringify(toHost(value))
}

/** A body: bytes as they are, text, everything else as JSON; undefined on failure, which is an empty body. */
export function evalBody(program: Program, context: object): Uint8Array | string | undefined {
  const value = program.eval(context)
  if (value instanceof CelError) return undefined
  if (value instanceof Uint8Array || typeof value === 'string') return value
  return JSON.stringify(toHost(value))
}

/** The host's form for metadata and attributes (`toHost`; flattened fields as `Flattened`); undefined on failure. */
export function evalHost(program: Program, context: object): unknown {
  const value = program.eval(context)
  return value instanceof CelError ? undefined : value instanceof Flattened ? value : toHost(value)
}

/** A number; undefined on failure and for other types. */
export function evalNumber(program: Program, context: object): number | undefined {
  const value = program.eval(context)
  if (typeof value === 'bigint') return Number(value)
  if (value instanceof Uint) return Number(value.value)
  return typeof value === 'number' ? value : undefined
}

/** Milliseconds of a duration or of a number of milliseconds; undefined on failure and for other types. */
export function evalDurationMs(program: Program, context: object): number | undefined {
  const value = program.eval(context)
  return value instanceof Duration ? value.ms : toNumber(value)
}

/** Milliseconds since 1970 of a timestamp; undefined on failure and for other types. */
export function evalTimestampMs(program: Program, context: object): number | undefined {
  const value = program.eval(context)
  return value instanceof Timestamp ? value.ms : undefined
}

function toNumber(value: Value): number | undefined {
  return typeof value === 'bigint' ? Number(value) : typeof value === 'number' ? value : undefined
}
