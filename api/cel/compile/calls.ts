import type { CallNode } from '../ast.ts'
import { chainOf } from '../ast.ts'
import { CelError } from '../error.ts'
import { suggest } from '../../suggest.ts'
import { findArities, findFunction, findMethod, isNamespace, listNames } from '../functions/index.ts'
import { HostMap, HostText, load, store } from '../values.ts'
import type { Stored, Value } from '../values.ts'
import { findVariable, fromLiteral, fromLive, fromStored } from './code.ts'
import type { Code, Compilation, Evaluate, Scope } from './code.ts'
import { locator } from './operators.ts'

type AnyFunction = (...args: Value[]) => Value

/** Methods of host values, with their number of arguments. */
const hostMethods: ReadonlyMap<string, number> = new Map([
  ['redacted', 0],
  ['raw', 0],
  ['cookie', 1],
  ['query', 1],
  ['addQuery', 2],
  ['setQuery', 2],
  ['join', 0],
  ['split', 0],
])

/** Compiles a call of a function or method. Reports an unknown name or a wrong number of arguments. */
export function compileCall(compilation: Compilation, node: CallNode, scope: Scope | undefined): Code {
  const { name, target, args } = node
  const qualified = target && qualify(target, name, scope)
  if (qualified !== undefined || target === undefined) {
    const full = qualified ?? name
    const found = findFunction(full, args.length, compilation.environment)
    if (full === 'json' || full === 'jsonField') compilation.reads.add('json()')
    if (found)
      return compileFunction(
        compilation,
        node,
        found as AnyFunction,
        args.map((arg) => compilation.compile(arg, scope).evaluate),
      )
    return fromLiteral(reportUnknown(compilation, node, full, false, scope))
  }
  const method = findMethod(name, args.length) as AnyFunction | undefined
  const isHost = hostMethods.get(name) === args.length
  if (method === undefined && !isHost) return fromLiteral(reportUnknown(compilation, node, name, true, scope))
  const receiver = compilation.compile(target, scope)
  const evaluators = args.map((arg) => compilation.compile(arg, scope).evaluate)
  if (!isHost && method) return compileFunction(compilation, node, method, [receiver.evaluate, ...evaluators])
  return compileHostMethod(compilation, node, receiver.stored, evaluators, method)
}

/** Full name of a function in a namespace, such as `base64.encode`; undefined if the target is not a namespace or a variable hides it. */
function qualify(target: NonNullable<CallNode['target']>, name: string, scope: Scope | undefined): string | undefined {
  const chain = chainOf(target)
  if (!chain || findVariable(chain[0] ?? '', scope)) return undefined
  const namespace = chain.join('.')
  return isNamespace(namespace) ? `${namespace}.${name}` : undefined
}

/** Also compiles the operands, to report all problems at once. */
function reportUnknown(compilation: Compilation, node: CallNode, name: string, isMethod: boolean, scope: Scope | undefined): CelError {
  const arities = findArities(name, isMethod)
  const other = findArities(name, !isMethod).length > 0
  let message = `unknown ${isMethod ? 'method' : 'function'} "${name}"`
  if (arities.length > 0) message = `${name}() takes ${arities.join(' or ')} arguments, not ${node.args.length}`
  else if (other) message += isMethod ? `; it is a function: ${name}(…)` : `; it is a method: x.${name}(…)`
  else {
    const meant = suggest(name, listNames(isMethod))
    if (meant !== undefined) message += `; did you mean "${meant}"?`
  }
  const error = compilation.report(node, 'no_such_overload', message)
  for (const part of [...(node.target && isMethod ? [node.target] : []), ...node.args]) compilation.compile(part, scope)
  return error
}

/** Has closures for one and two arguments, which need no list of arguments. */
function compileFunction(compilation: Compilation, node: CallNode, call: AnyFunction, args: readonly Evaluate[]): Code {
  const noOverload = compilation.error(node, 'no_such_overload', `${node.name}() does not take these types`)
  const locate = locator(compilation, node)
  const finish = (result: Value): Value => (result === undefined ? noOverload : result instanceof CelError ? locate(result) : result)
  const [first, second] = args
  if (args.length === 1 && first) {
    return fromLive((frame) => {
      const a = first(frame)
      return a instanceof CelError ? a : finish(call(a))
    })
  }
  if (args.length === 2 && first && second) {
    return fromLive((frame) => {
      const a = first(frame)
      if (a instanceof CelError) return a
      const b = second(frame)
      return b instanceof CelError ? b : finish(call(a, b))
    })
  }
  return fromLive((frame) => {
    const values: Value[] = []
    for (const arg of args) {
      const value = arg(frame)
      if (value instanceof CelError) return value
      values.push(value)
    }
    return finish(call(...values))
  })
}

/** Calls a method of a host value. Falls back to `method`, the method of that name for other values. */
function compileHostMethod(
  compilation: Compilation,
  node: CallNode,
  receiver: (frame: Parameters<Evaluate>[0]) => Stored,
  args: readonly Evaluate[],
  method: AnyFunction | undefined,
): Code {
  const noOverload = compilation.error(node, 'no_such_overload', `${node.name}() does not take these types`)
  const locate = locator(compilation, node)
  return fromStored((frame) => {
    const value = receiver(frame)
    if (value instanceof CelError) return value
    const values: Value[] = []
    for (const arg of args) {
      const argument = arg(frame)
      if (argument instanceof CelError) return argument
      values.push(argument)
    }
    const own = value instanceof HostMap || value instanceof HostText ? value.call?.(node.name, values) : undefined
    const result = own ?? store(method?.(load(value), ...values))
    return result === undefined ? noOverload : result instanceof CelError ? locate(result) : result
  })
}
