import type { Value } from '../values.ts'

/**
 * A function of the language. The first argument of a method is its receiver. Returns undefined if it does not accept the types
 * of the arguments, and a shared CelError on failure. Arguments are never errors. Must not throw.
 */
export type CelFunction = (...args: never[]) => Value

/** Functions by name and number of arguments without the receiver: `size/0`. `*` stands for any number. */
export type FunctionTable = Readonly<Record<string, CelFunction>>
