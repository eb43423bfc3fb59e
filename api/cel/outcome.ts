import { toText } from './convert.ts'
import { CelError, isAbsence } from './error.ts'
import { Flattened, toHost, toJsonText } from './host.ts'
import { asJson, asStored } from './json.ts'
import { isMap } from './map.ts'
import type { Program } from './program.ts'
import { Duration, Timestamp } from './time.ts'
import { Secret, Uint } from './values.ts'
import type { Stored, Value } from './values.ts'

// Converts the result of an evaluation to the type that its use needs. A failed evaluation is false for conditions and undefined
// otherwise; the caller then removes, omits or drops the value (traffic.md §9).

/** For conditions: false if the evaluation fails or the result is not `true`. */
export function evalBool(program: Program, context: object): boolean {
  return program.eval(context) === true
}

/** For rules that must distinguish an error from false. Results of other types are errors. */
export function evalCondition(program: Program, context: object): boolean | CelError {
  const value = program.eval(context)
  return typeof value === 'boolean' || value instanceof CelError ? value : new CelError('no_such_overload', 'the condition is not a bool', 0)
}

/**
 * For rules that deny (traffic.md §8.6): true if the rule matches, false if it does not or reads a value that is absent, and the error if the rule
 * cannot be evaluated, so that a client cannot evade it. Results of other types are errors.
 */
export function evalDenial(program: Program, context: object): boolean | CelError {
  const value = evalCondition(program, context)
  return value instanceof CelError && isAbsence(value) ? false : value
}

/** For headers, descriptors and labels: the result of `string()`; lists and maps as JSON; undefined for null and failures. */
export function evalString(program: Program, context: object): string | undefined {
  return toStringOrUndefined(program.eval(context))
}

/** For keys of counters, which are never shown: as `evalString`, but a secret is its text, so that `apiKey.key` distinguishes clients. */
export function evalKey(program: Program, context: object): string | undefined {
  const value = program.eval(context)
  return value instanceof Secret ? value.reveal() : toStringOrUndefined(value)
}

function toStringOrUndefined(value: ReturnType<Program['eval']>): string | undefined {
  if (value === null || value instanceof CelError) return undefined
  const text = toText(value)
  if (typeof text === 'string') return text
  if (!Array.isArray(value) && !isMap(value)) return undefined
  return toJsonText(value)
}

/** For bodies: bytes and strings unchanged, other values as JSON; undefined on failure. */
export function evalBody(program: Program, context: object): Uint8Array | string | undefined {
  const value = program.eval(context)
  if (value instanceof CelError) return undefined
  if (value instanceof Uint8Array || typeof value === 'string') return value
  return toJsonText(value)
}

/** For metadata and attributes: the result of `toHost`, except that `Flattened` stays as it is; undefined on failure. */
export function evalHost(program: Program, context: object): unknown {
  const value = program.eval(context)
  return value instanceof CelError ? undefined : value instanceof Flattened ? value : toHost(value)
}

/** For members of JSON bodies: as `toHost`, with all digits of integers (`JSON.stringify` prints them); undefined on failure. */
export function evalJson(program: Program, context: object): unknown {
  const value = program.eval(context)
  return value instanceof CelError ? undefined : toHost(value, asJson)
}

/** For variables of later expressions: as `toHost`, with integers of 64 bits; undefined on failure. */
export function evalStored(program: Program, context: object): Stored {
  const value = program.eval(context)
  return value instanceof CelError ? undefined : toHost(value, asStored)
}

/** Undefined on failure and for types that are not numbers. */
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
