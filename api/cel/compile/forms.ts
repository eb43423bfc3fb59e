import { fits } from '../arithmetic.ts'
import { chainOf } from '../ast.ts'
import type { CallNode } from '../ast.ts'
import { chargeLength } from '../budget.ts'
import { CelError, overflow } from '../error.ts'
import { compileSearch, isRegexError } from '../../regex/search.ts'
import type { Search } from '../../regex/search.ts'
import { HostText, Optional, none } from '../values.ts'
import type { Value } from '../values.ts'
import { compileHas } from './access.ts'
import { findVariable, fromLiteral, fromLive, fromStored } from './code.ts'
import type { Code, Compilation, Scope } from './code.ts'
import { variableName } from './macros.ts'
import { locator } from './operators.ts'

type Form = (compilation: Compilation, node: CallNode, scope: Scope | undefined) => Code | undefined

/** Calls with an evaluation of their own: some arguments are not evaluated, or checked at compile time. Keyed by name and number of arguments. */
const functions: ReadonlyMap<string, Form> = new Map<string, Form>([
  ['has/1', (compilation, node, scope) => node.args[0] && compileHas(compilation, node.args[0], scope)],
  ['default/2', compileDefault],
  ['variables/0', compileVariables],
  ['fail/1', compileFail],
  ['fail/0', compileFail],
  ['flatten/1', checkFlatten],
  ['flattenRecursive/1', checkFlatten],
  ['matches/2', compileMatches],
])

const methods: ReadonlyMap<string, Form> = new Map<string, Form>([
  ['with/2', compileWith],
  ['optMap/2', compileOptMap],
  ['optFlatMap/2', compileOptMap],
  ['or/1', compileOr],
  ['orValue/1', compileOr],
  ['matches/1', compileMatches],
  ['regexReplace/2', compileRegexReplace],
  ['startsWith/1', compileStartsWith],
])

/** Compiles a special form; undefined if the call is not one. */
export function compileForm(compilation: Compilation, node: CallNode, scope: Scope | undefined): Code | undefined {
  const { target, name, args } = node
  if (target === undefined) {
    if (name === 'coalesce') return compileCoalesce(compilation, node, scope)
    return functions.get(`${name}/${args.length}`)?.(compilation, node, scope)
  }
  if (name === 'bind' && args.length === 3 && chainOf(target)?.join('.') === 'cel' && !findVariable('cel', scope)) return compileBind(compilation, node, scope)
  return methods.get(`${name}/${args.length}`)?.(compilation, node, scope)
}

/** `cel.bind(x, value, expr)`. */
function compileBind(compilation: Compilation, node: CallNode, scope: Scope | undefined): Code | undefined {
  const [variable, value, body] = node.args
  return variable && value && body && compileLet(compilation, node, variable, compilation.compile(value, scope), body, scope)
}

/** `value.with(x, expr)`. */
function compileWith(compilation: Compilation, node: CallNode, scope: Scope | undefined): Code | undefined {
  const [variable, body] = node.args
  return variable && body && node.target && compileLet(compilation, node, variable, compilation.compile(node.target, scope), body, scope)
}

/** Binds a variable. If its value is an error, that matters only where the variable is used. */
function compileLet(
  compilation: Compilation,
  node: CallNode,
  variable: CallNode['args'][number],
  value: Code,
  body: CallNode['args'][number],
  scope: Scope | undefined,
): Code {
  const name = variableName(variable)
  if (name === undefined) return fromLiteral(compilation.report(variable, 'invalid', `${node.name}() takes the name of a variable first`))
  const inner = compilation.bind(name, scope)
  const { slot } = inner
  const code = compilation.compile(body, inner)
  return {
    evaluate: (frame) => {
      frame.slots[slot] = value.stored(frame)
      return code.evaluate(frame)
    },
    stored: (frame) => {
      frame.slots[slot] = value.stored(frame)
      return code.stored(frame)
    },
  }
}

/** `default(value, fallback)`: the fallback replaces null, a missing key and a variable that is not set or not available; other errors stay. */
function compileDefault(compilation: Compilation, node: CallNode, scope: Scope | undefined): Code | undefined {
  const [first, second] = node.args
  if (!first || !second) return undefined
  const problems = compilation.problems.length
  const value = compilation.compile(first, scope)
  forgiveUnknown(compilation, problems)
  const fallback = compilation.compile(second, scope)
  const isMissing = (result: Value): boolean =>
    result === null || (result instanceof CelError && (result.code === 'no_such_key' || result.code === 'undeclared' || result.code === 'absent_in_loop'))
  return fromStored((frame) => {
    const result = value.stored(frame)
    return isMissing(result) ? fallback.stored(frame) : result
  })
}

/** Removes the problems about unknown variables: `default` and `coalesce` handle them. */
function forgiveUnknown({ problems }: Compilation, since: number): void {
  const kept = problems.slice(since).filter(({ message }) => !message.startsWith('unknown variable') && !message.includes('is not known here'))
  problems.splice(since, problems.length, ...kept)
}

/**
 * `coalesce(…)`: the first value that is neither null nor an error, otherwise the last error, otherwise null. A value that exists and cannot be read is
 * the result, so that a client cannot replace it by sending too much or twice.
 */
function compileCoalesce(compilation: Compilation, node: CallNode, scope: Scope | undefined): Code {
  const problems = compilation.problems.length
  const args = node.args.map((arg) => compilation.compile(arg, scope).stored)
  forgiveUnknown(compilation, problems)
  return fromStored((frame) => {
    let failure: Value = null
    for (const arg of args) {
      const value = arg(frame)
      if (value instanceof CelError && value.code === 'unreadable') return value
      if (value instanceof CelError) failure = value
      else if (value !== null) return value
    }
    return failure
  })
}

/** `variables()`: all variables that are set, as a map. Counts as a read of everything. */
function compileVariables(compilation: Compilation): Code {
  compilation.reads.add('*')
  return fromStored((frame) => frame.root)
}

/** `fail("why")`. Only a literal message is shown: a computed one may contain data. */
function compileFail(compilation: Compilation, node: CallNode, scope: Scope | undefined): Code {
  const [message] = node.args
  const text = message && compilation.compile(message, scope).literal?.value
  return fromLiteral(compilation.error(node, 'failed', typeof text === 'string' ? text : 'fail() was called'))
}

function checkFlatten(compilation: Compilation, node: CallNode): undefined {
  if (compilation.environment.hasFlatten === false) compilation.report(node, 'invalid', `${node.name}() is only for fields of logs and traces`)
  return undefined
}

function compileOptMap(compilation: Compilation, node: CallNode, scope: Scope | undefined): Code | undefined {
  const [variable, body] = node.args
  const name = variable && variableName(variable)
  if (!node.target || !body || name === undefined) {
    return fromLiteral(compilation.report(variable ?? node, 'invalid', `${node.name}() takes the name of a variable first`))
  }
  const target = compilation.compile(node.target, scope).stored
  const inner = compilation.bind(name, scope)
  const { slot } = inner
  const result = compilation.compile(body, inner).stored
  const noOptional = compilation.error(node, 'no_such_overload', `${node.name}() needs an optional`)
  const isFlat = node.name === 'optFlatMap'
  return fromStored((frame) => {
    const optional = target(frame)
    if (optional instanceof CelError) return optional
    if (!(optional instanceof Optional)) return noOptional
    if (optional.value === undefined) return none
    frame.slots[slot] = optional.value
    const value = result(frame)
    if (value instanceof CelError || (isFlat && value instanceof Optional)) return value
    return isFlat ? noOptional : new Optional(value)
  })
}

/** `a.or(b)` and `a.orValue(x)`: the argument is evaluated only if `a` has no value. */
function compileOr(compilation: Compilation, node: CallNode, scope: Scope | undefined): Code | undefined {
  const [other] = node.args
  if (!node.target || !other) return undefined
  const target = compilation.compile(node.target, scope).stored
  const otherwise = compilation.compile(other, scope).stored
  const noOptional = compilation.error(node, 'no_such_overload', `${node.name}() needs an optional`)
  const isValue = node.name === 'orValue'
  return fromStored((frame) => {
    const optional = target(frame)
    if (optional instanceof CelError) return optional
    if (!(optional instanceof Optional)) return noOptional
    if (optional.value !== undefined) return isValue ? optional.value : optional
    const result = otherwise(frame)
    return isValue || result instanceof Optional || result instanceof CelError ? result : noOptional
  })
}

/** `startsWith` with a literal prefix, the most common test of a string. */
function compileStartsWith(compilation: Compilation, node: CallNode, scope: Scope | undefined): Code | undefined {
  const [argument] = node.args
  if (!node.target || argument?.kind !== 'literal' || typeof argument.value !== 'string') return undefined
  const prefix = argument.value
  const read = compilation.compile(node.target, scope).stored
  const noText = compilation.error(node, 'no_such_overload', 'startsWith() does not take these types')
  return fromStored((frame) => {
    const text = read(frame)
    if (typeof text === 'string') return text.startsWith(prefix)
    if (text instanceof HostText) return text.text.startsWith(prefix)
    return text instanceof CelError ? text : noText
  })
}

/** Compiles a literal pattern and reports an invalid one. Undefined if the pattern is not a literal. */
function compilePattern(compilation: Compilation, node: CallNode['args'][number]): Search | CelError | undefined {
  if (node.kind !== 'literal' || typeof node.value !== 'string') return undefined
  const search = compileSearch(node.value)
  return isRegexError(search) ? compilation.report(node, 'invalid_argument', `the pattern is not a regular expression (RE2): ${search.error}`) : search
}

/** `text.matches(pattern)` and `matches(text, pattern)`. */
function compileMatches(compilation: Compilation, node: CallNode, scope: Scope | undefined): Code | undefined {
  const [text, pattern] = node.target ? [node.target, node.args[0]] : node.args
  const search = pattern && compilePattern(compilation, pattern)
  if (!text || !search) return undefined
  const read = compilation.compile(text, scope).evaluate
  if (search instanceof CelError) return fromLiteral(search)
  const noText = compilation.error(node, 'no_such_overload', 'matches() needs a string')
  return fromStored((frame) => {
    const value = read(frame)
    if (typeof value !== 'string') return value instanceof CelError ? value : noText
    chargeLength(value.length * search.cost)
    return search.test(value)
  })
}

function compileRegexReplace(compilation: Compilation, node: CallNode, scope: Scope | undefined): Code | undefined {
  const [pattern, replacement] = node.args
  const search = pattern && compilePattern(compilation, pattern)
  if (!node.target || !replacement || !search) return undefined
  const text = compilation.compile(node.target, scope).evaluate
  const put = compilation.compile(replacement, scope).evaluate
  if (search instanceof CelError) return fromLiteral(search)
  const noText = compilation.error(node, 'no_such_overload', 'regexReplace() needs strings')
  const locate = locator(compilation, node)
  return fromLive((frame) => {
    const value = text(frame)
    if (value instanceof CelError) return value
    const by = put(frame)
    if (by instanceof CelError) return by
    if (typeof value !== 'string' || typeof by !== 'string') return noText
    chargeLength(value.length * (64 + search.cost))
    return fits(value.length * by.split('$').length + by.length) ? search.replaceFirst(value, by) : locate(overflow)
  })
}
