import type { Value } from '../values.ts'

/**
 * A function of the language. A method's receiver is its first argument. Gives undefined when it does not take these
 * types, a CelError made beforehand when it fails; it never sees an error and must not throw.
 */
export type CelFunction = (...args: never[]) => Value

/** Keyed by name and number of arguments, the receiver not counted: `size/0`; `*` takes any number. */
export type FunctionTable = Readonly<Record<string, CelFunction>>
