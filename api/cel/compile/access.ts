import { suggest } from '../../suggest.ts'
import type { IdentNode, IndexNode, Node, SelectNode } from '../ast.ts'
import { chainOf } from '../ast.ts'
import { CelError, noSuchKey, outOfRange } from '../error.ts'
import { getField, getKey, getMember, isMap, isPlainName, toKey } from '../map.ts'
import { Double, Optional, Uint, none, types } from '../values.ts'
import type { Stored, Value } from '../values.ts'
import { findVariable, fromLiteral, fromStored } from './code.ts'
import type { Code, Compilation, Frame, Scope } from './code.ts'
import { readRoot } from './roots.ts'

const typeNames: ReadonlyMap<string, Value> = new Map(
  [types.bool, types.bytes, types.double, types.int, types.list, types.map, types.null_type, types.optional_type, types.string, types.type, types.uint]
    .concat([types.timestamp, types.duration, types.ip, types.cidr])
    .map((type) => [type.name, type]),
)

/** `a`: a variable of a macro or the host, or a type. */
export function compileIdent(compilation: Compilation, node: IdentNode, scope: Scope | undefined): Code {
  const variable = node.isAbsolute ? undefined : findVariable(node.name, scope)
  if (variable) {
    const { slot } = variable
    return fromStored((frame) => frame.slots[slot])
  }
  return compileRoot(compilation, node, [node.name])
}

/** A variable of the host, or the name of a type. */
function compileRoot(compilation: Compilation, node: Node, chain: readonly string[]): Code {
  const name = chain.join('.')
  const { variables, elsewhere } = compilation.environment
  if (!variables?.has(name)) {
    const type = typeNames.get(name)
    if (type) return fromLiteral(type)
    if (variables) {
      const since = elsewhere?.get(name)
      const meant = suggest(name, variables)
      const message =
        since === undefined
          ? `unknown variable "${name}"${meant === undefined ? '' : `; did you mean "${meant}"?`}`
          : `"${name}" is not known here, only ${since}`
      return fromLiteral(compilation.report(node, 'undeclared', message))
    }
  }
  compilation.recordRead(chain)
  const undeclared = compilation.error(node, 'undeclared', `"${name}" is not set`)
  const read = readRoot(name)
  const code = fromStored((frame) => {
    const value = read(frame)
    return value === undefined ? undeclared : value
  })
  return { ...code, path: [name] }
}

/** `a.b` and `a.?b`. */
export function compileSelect(compilation: Compilation, node: SelectNode, scope: Scope | undefined): Code {
  const chain = chainOf(node)
  if (chain) {
    const code = compileDotted(compilation, node, chain, scope)
    if (code) return code
  }
  const { stored: operand, path } = compilation.compile(node.operand, scope)
  const { field } = node
  checkMember(compilation, node, path, field)
  if (node.isOptional) return compileOptional(compilation, node, operand, field)
  const failures = failuresOf(compilation, node, field)
  const finish = (container: Stored): Stored => selectSlowly(container, field, failures)
  const code = fromStored((frame) => {
    const container = operand(frame)
    const value = getField(container, field)
    return value === undefined ? finish(container) : value
  })
  return path ? readPath([...path, field], code, finish) : code
}

/** Reports a member that its variable never has: the expression is evaluated as before, where the member does not exist. */
function checkMember({ environment, problems }: Compilation, node: Node, path: readonly string[] | undefined, field: string): void {
  const [root = ''] = path ?? []
  const members = path?.length === 1 ? environment.members?.get(root) : undefined
  if (members === undefined || members.has(field)) return
  const near = suggest(field, members)
  const hint = near === undefined ? `it has ${[...members].join(', ')}` : `did you mean "${near}"?`
  const message = `"${root}" has no member ${JSON.stringify(field)}; ${hint}`
  // Some macros compile a node twice.
  if (!problems.some((known) => known.offset === node.at && known.message === message)) problems.push({ offset: node.at, message })
}

/**
 * Reads a member of a variable, the most common node: one closure for up to three names. If the container exists, `finish`
 * creates the error; otherwise `slow` evaluates the chain node by node.
 */
function readPath(path: readonly string[], slow: Code, finish: (container: Stored) => Stored): Code {
  const [root = '', a = '', b = ''] = path
  const read = readRoot(root)
  if (path.length > 3 || !isPlainName(a) || !isPlainName(b)) return { ...slow, path }
  const miss = (frame: Frame, container: Stored): Stored => (container === undefined ? slow.stored(frame) : finish(container))
  const code = fromStored(
    path.length === 2
      ? (frame) => {
          const container = read(frame)
          const value = getMember(container, a)
          return value === undefined ? miss(frame, container) : value
        }
      : (frame) => {
          const container = getMember(read(frame), a)
          const value = getMember(container, b)
          return value === undefined ? miss(frame, container) : value
        },
  )
  return { ...code, path }
}

/** Compiles a name with dots: of a type, or declared by the environment. Otherwise records the member that is read. */
function compileDotted(compilation: Compilation, node: SelectNode, chain: readonly string[], scope: Scope | undefined): Code | undefined {
  const [first = ''] = chain
  if (!rootOf(node).isAbsolute && findVariable(first, scope)) return undefined
  const name = chain.join('.')
  const { variables } = compilation.environment
  if (variables?.has(name) || (typeNames.has(name) && !variables?.has(first))) return compileRoot(compilation, node, chain)
  if (isHostChain(compilation, node, chain, scope)) compilation.recordRead(chain)
  return undefined
}

/** Whether a chain starts with a variable of the host, not of a macro. */
function isHostChain(compilation: Compilation, node: SelectNode, [first = '']: readonly string[], scope: Scope | undefined): boolean {
  if (!rootOf(node).isAbsolute && findVariable(first, scope)) return false
  return compilation.environment.variables?.has(first) ?? true
}

function rootOf(node: SelectNode): IdentNode {
  let at: Node = node
  while (at.kind === 'select') at = at.operand
  return at as IdentNode
}

interface Failures {
  readonly missing: CelError
  readonly noMap: CelError
}

/** The errors quote the member only if it is a literal: a computed key is data. */
function failuresOf(compilation: Compilation, node: Node, key: Value): Failures {
  const quoted = typeof key === 'string' || typeof key === 'bigint' ? ` ${JSON.stringify(String(key))}` : ''
  return {
    missing: compilation.error(node, 'no_such_key', `no such key${quoted}`),
    noMap: compilation.error(node, 'no_such_key', `no such key${quoted}: the value has no members`),
  }
}

/** Result of a selection without a plain member: a member of an optional, or an error. */
function selectSlowly(container: Stored, field: string, failures: Failures): Stored {
  if (container instanceof CelError) return container
  if (container instanceof Optional) return mapOptional(container, (inner) => (isMap(inner) ? getField(inner, field) : failures.noMap))
  return isMap(container) ? failures.missing : failures.noMap
}

/** Reads a member of an optional; the result is optional. */
function mapOptional({ value }: Optional, read: (inner: Stored) => Stored): Stored {
  if (value === undefined) return none
  const member = read(value)
  if (member === undefined) return none
  return member instanceof CelError ? member : new Optional(member)
}

/** `a[b]` and `a[?b]`. */
export function compileIndex(compilation: Compilation, node: IndexNode, scope: Scope | undefined): Code {
  const { stored: operand, path } = compilation.compile(node.operand, scope)
  const index = compilation.compile(node.index, scope)
  const key = index.literal?.value
  if (typeof key === 'string') checkMember(compilation, node, path, key)
  if (node.isOptional) return compileOptional(compilation, node, operand, key, index.evaluate)
  const failures = failuresOf(compilation, node, key)
  const bounds = compilation.error(node, outOfRange.code, outOfRange.message)
  const noIndex = compilation.error(node, 'no_such_overload', 'the value cannot be indexed like this')
  if (typeof key === 'string') {
    const finish = (container: Stored): Stored => (Array.isArray(container) ? noIndex : selectSlowly(container, key, failures))
    const code = fromStored((frame) => {
      const container = operand(frame)
      const value = getField(container, key)
      return value === undefined ? finish(container) : value
    })
    return path ? readPath([...path, key], code, finish) : code
  }
  return fromStored((frame) => {
    const container = operand(frame)
    if (container instanceof CelError) return container
    const at = index.evaluate(frame)
    if (at instanceof CelError) return at
    if (container instanceof Optional) {
      return mapOptional(container, (inner) => {
        const value = readIndex(inner, at)
        if (value === outOfRange || value === noSuchKey) return undefined
        return value === undefined ? noIndex : value
      })
    }
    const value = readIndex(container, at)
    if (value === outOfRange) return bounds
    if (value === noSuchKey) return failures.missing
    return value === undefined ? noIndex : value
  })
}

/** A member, `outOfRange`, `noSuchKey`, or undefined if the value cannot be indexed with this type. */
function readIndex(container: Stored, at: Value): Stored {
  if (Array.isArray(container)) {
    const index = toListIndex(at)
    if (index === undefined) return undefined
    return index >= 0 && index < container.length ? ((container[index] as Stored) ?? null) : outOfRange
  }
  if (!isMap(container)) return undefined
  const key = toKey(at)
  if (key === undefined) return typeof at === 'number' ? noSuchKey : undefined
  const value = getKey(container, key)
  return value === undefined ? noSuchKey : value
}

function toListIndex(at: Value): number | undefined {
  if (typeof at === 'bigint') return Number(at)
  if (at instanceof Uint) return Number(at.value)
  const double = at instanceof Double ? at.value : at
  return typeof double === 'number' && Number.isInteger(double) ? double : undefined
}

/** `a.?b` and `a[?k]`: an optional; an error if `a` has no members. */
function compileOptional(compilation: Compilation, node: Node, operand: (frame: Frame) => Stored, key: Value, index?: (frame: Frame) => Value): Code {
  const noIndex = compilation.error(node, 'no_such_overload', 'the value has no such members')
  const read = (container: Stored, at: Value): Stored => {
    const value = readIndex(container, at)
    if (value === outOfRange || value === noSuchKey) return undefined
    return value === undefined ? noIndex : value
  }
  return fromStored((frame) => {
    const container = operand(frame)
    if (container instanceof CelError) return container
    const at = index ? index(frame) : key
    if (at instanceof CelError) return at
    return mapOptional(container instanceof Optional ? container : new Optional(container), (inner) => read(inner, at))
  })
}

/** `has(a.b)`: whether the member exists. An error of the operand `a` is the result. */
export function compileHas(compilation: Compilation, node: Node, scope: Scope | undefined): Code {
  if (node.kind !== 'select') return fromLiteral(compilation.report(node, 'invalid', 'has() takes a member such as a.b'))
  const chain = chainOf(node)
  if (chain && isHostChain(compilation, node, chain, scope)) compilation.recordRead(chain)
  const { stored: operand, path } = compilation.compile(node.operand, scope)
  const { field } = node
  checkMember(compilation, node, path, field)
  const noMap = compilation.error(node, 'no_such_overload', 'the value has no members')
  return fromStored((frame) => {
    const container = operand(frame)
    if (container instanceof CelError) return container
    const inner = container instanceof Optional ? container.value : container
    if (inner === undefined) return false
    const member = getField(inner, field)
    if (member !== undefined) return member instanceof CelError ? member : true
    return isMap(inner) || inner === null ? false : noMap
  })
}
