import type { Environment } from '../environment.ts'
import { collectionFunctions, collectionMethods } from './collections.ts'
import { encoderFunctions, encoderMethods } from './encoders.ts'
import { mathFunctions } from './math.ts'
import { netFunctions, netMethods } from './net.ts'
import { randomFunctions } from './random.ts'
import { standardFunctions, standardMethods } from './standard.ts'
import { stringFunctions, stringMethods } from './strings.ts'
import type { CelFunction, FunctionTable } from './table.ts'
import { timeMethods } from './time.ts'

const withoutEntropy = randomFunctions(undefined)
/** Functions, called as `f(x)` or `a.f(x)`; the name is `f` or `a.f`. */
const functions = toMap(standardFunctions, stringFunctions, mathFunctions, encoderFunctions, collectionFunctions, netFunctions, withoutEntropy)
/** Methods, called as `x.f()`. */
const methods = toMap(standardMethods, stringMethods, timeMethods, collectionMethods, encoderMethods, netMethods)

function toMap(...tables: readonly FunctionTable[]): ReadonlyMap<string, CelFunction> {
  return new Map(tables.flatMap((table) => Object.entries(table)))
}

/** The function `name` for `arity` arguments, or for any number of them. Its randomness is that of the environment. */
export function findFunction(name: string, arity: number, { entropy }: Environment): CelFunction | undefined {
  const key = `${name}/${arity}`
  if (entropy !== undefined && key in withoutEntropy) return randomFunctions(entropy)[key]
  return functions.get(key) ?? functions.get(`${name}/*`)
}

/** The method `name` for `arity` arguments. */
export function findMethod(name: string, arity: number): CelFunction | undefined {
  return methods.get(`${name}/${arity}`)
}

/** Numbers of arguments that a function accepts, for messages; empty if there is no function of that name. */
export function findArities(name: string, isMethod: boolean): string[] {
  const prefix = `${name}/`
  return [...(isMethod ? methods : functions).keys()].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length))
}

/** Names of all functions or methods, for suggestions. */
export function listNames(isMethod: boolean): Set<string> {
  return new Set([...(isMethod ? methods : functions).keys()].map((key) => key.slice(0, key.lastIndexOf('/'))))
}

const namespaces = new Set([...functions.keys()].filter((key) => key.includes('.')).map((key) => key.slice(0, key.lastIndexOf('.'))))

/** Whether functions have this prefix: `base64` of `base64.encode`. */
export function isNamespace(name: string): boolean {
  return namespaces.has(name)
}
