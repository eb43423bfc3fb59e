import type { ListNode, MapNode, Node } from '../ast.ts'
import { CelError } from '../error.ts'
import { CelMap } from '../map.ts'
import { Optional, load } from '../values.ts'
import type { Stored } from '../values.ts'
import { compileIdent, compileIndex, compileSelect } from './access.ts'
import { compileCall } from './calls.ts'
import { fromLiteral, fromStored } from './code.ts'
import type { Code, Compilation, Scope } from './code.ts'
import { compileForm } from './forms.ts'
import { compileMacro } from './macros.ts'
import { compileBinary, compileConditional, compileLogic, compileUnary, locator } from './operators.ts'

/** Compiles any node. */
export function compileNode(compilation: Compilation, node: Node, scope: Scope | undefined): Code {
  switch (node.kind) {
    case 'literal':
      return fromLiteral(node.value)
    case 'ident':
      return compileIdent(compilation, node, scope)
    case 'select':
      return compileSelect(compilation, node, scope)
    case 'index':
      return compileIndex(compilation, node, scope)
    case 'call':
      return compileForm(compilation, node, scope) ?? compileMacro(compilation, node, scope) ?? compileCall(compilation, node, scope)
    case 'and':
    case 'or':
      return compileLogic(compilation, node, scope)
    case 'conditional':
      return compileConditional(compilation, node, scope)
    case 'unary':
      return compileUnary(compilation, node, scope)
    case 'binary':
      return compileBinary(compilation, node, scope)
    case 'list':
      return compileList(compilation, node, scope)
    case 'map':
      return compileMap(compilation, node, scope)
    case 'struct':
      return fromLiteral(compilation.report(node, 'invalid', `message types such as ${node.name} are not supported; write a map`))
  }
}

function compileList(compilation: Compilation, node: ListNode, scope: Scope | undefined): Code {
  const elements = node.elements.map(({ value, isOptional }) => ({ isOptional, read: compilation.compile(value, scope).stored }))
  const noOptional = compilation.error(node, 'no_such_overload', 'an element after ? is not an optional')
  return fromStored((frame) => {
    const list: Stored[] = []
    for (const { read, isOptional } of elements) {
      const value = read(frame)
      if (value instanceof CelError) return value
      if (!isOptional) list.push(value)
      else if (!(value instanceof Optional)) return noOptional
      else if (value.value !== undefined) list.push(value.value)
    }
    return list
  })
}

function compileMap(compilation: Compilation, node: MapNode, scope: Scope | undefined): Code {
  const entries = node.entries.map(({ key, value, isOptional }) => ({
    isOptional,
    key: compilation.compile(key, scope).evaluate,
    read: compilation.compile(value, scope).evaluate,
  }))
  const noOptional = compilation.error(node, 'no_such_overload', 'a value after ? is not an optional')
  const locate = locator(compilation, node)
  return fromStored((frame) => {
    const map = new CelMap()
    for (const { key, read, isOptional } of entries) {
      let value = read(frame)
      if (isOptional && !(value instanceof CelError)) {
        if (!(value instanceof Optional)) return noOptional
        if (value.value === undefined) continue
        value = load(value.value)
      }
      const failure = map.add(key(frame), value)
      if (failure) return locate(failure)
    }
    return map
  })
}
