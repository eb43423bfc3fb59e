import { add, divide, modulo, multiply, negate, subtract } from '../arithmetic.ts'
import type { Arithmetic } from '../arithmetic.ts'
import type { BinaryNode, BinaryOperator, ConditionalNode, LogicNode, Node, UnaryNode } from '../ast.ts'
import { charge, chargeLength } from '../budget.ts'
import { compareOrder, isEqual, toNumeric } from '../compare.ts'
import { CelError, combineErrors, repeatedHeader } from '../error.ts'
import { RepeatedHeader } from '../headers.ts'
import { getKey, isMap, toKey } from '../map.ts'
import type { Stored, Value } from '../values.ts'
import { fromLive, fromStored } from './code.ts'
import type { Code, Compilation, Evaluate, Frame, Scope } from './code.ts'

type Read = (frame: Frame) => Stored

/** `&&` and `||`: a decisive operand wins over errors of the others, in any order (CEL specification, logical operators). */
export function compileLogic(compilation: Compilation, node: LogicNode, scope: Scope | undefined): Code {
  const decisive = node.kind === 'or'
  const operands = node.operands.map((operand) => compilation.compile(operand, scope).stored)
  const noBool = compilation.error(node, 'no_such_overload', `an operand of ${decisive ? '||' : '&&'} is not a bool`)
  const [a, b] = operands
  if (operands.length === 2 && a && b) {
    return fromStored((frame) => {
      const left = a(frame)
      if (left === decisive) return decisive
      const right = b(frame)
      if (right === decisive) return decisive
      if (left === !decisive && right === !decisive) return !decisive
      const failure = typeof left === 'boolean' ? undefined : left instanceof CelError ? left : noBool
      return typeof right === 'boolean' ? (failure ?? noBool) : combineErrors(decisive, failure, right instanceof CelError ? right : noBool)
    })
  }
  return fromStored((frame) => {
    let failure: CelError | undefined
    for (const operand of operands) {
      const value = operand(frame)
      if (value === decisive) return decisive
      if (value !== !decisive) failure = combineErrors(decisive, failure, value instanceof CelError ? value : noBool)
    }
    return failure ?? !decisive
  })
}

/** `a ? b : c`: evaluates only the selected branch. */
export function compileConditional(compilation: Compilation, node: ConditionalNode, scope: Scope | undefined): Code {
  const condition = compilation.compile(node.condition, scope).stored
  const consequence = compilation.compile(node.consequence, scope)
  const otherwise = compilation.compile(node.otherwise, scope)
  const noBool = compilation.error(node, 'no_such_overload', 'the condition is not a bool')
  const choose = (frame: Frame, yes: Read, no: Read): Stored => {
    const value = condition(frame)
    if (value === true) return yes(frame)
    if (value === false) return no(frame)
    return value instanceof CelError ? value : noBool
  }
  return {
    evaluate: (frame) => choose(frame, consequence.evaluate, otherwise.evaluate),
    stored: (frame) => choose(frame, consequence.stored, otherwise.stored),
  }
}

/** `!a` and `-a`. */
export function compileUnary(compilation: Compilation, node: UnaryNode, scope: Scope | undefined): Code {
  const operand = compilation.compile(node.operand, scope)
  const noOverload = compilation.error(node, 'no_such_overload', `${node.operator} does not apply to this type`)
  if (node.operator === '!') {
    return fromStored((frame) => {
      const value = operand.stored(frame)
      if (typeof value === 'boolean') return !value
      return value instanceof CelError ? value : noOverload
    })
  }
  const locate = locator(compilation, node)
  return fromLive((frame) => {
    const value = operand.evaluate(frame)
    if (value instanceof CelError) return value
    const result = negate(value)
    return result === undefined ? noOverload : result instanceof CelError ? locate(result) : result
  })
}

const arithmetic: Readonly<Partial<Record<BinaryOperator, Arithmetic>>> = { '+': add, '-': subtract, '*': multiply, '/': divide, '%': modulo }

/** Arithmetic, comparisons and `in`. */
export function compileBinary(compilation: Compilation, node: BinaryNode, scope: Scope | undefined): Code {
  const left = compilation.compile(node.left, scope)
  const right = compilation.compile(node.right, scope)
  const { operator } = node
  const compute = arithmetic[operator]
  if (compute) return compileArithmetic(compilation, node, left.evaluate, right.evaluate, compute)
  if (operator === '==' || operator === '!=') return compileEquality(left, right, operator === '==')
  const noOverload = compilation.error(node, 'no_such_overload', `${operator} does not apply to these types`)
  return operator === 'in' ? compileIn(left.stored, right.stored, noOverload) : compileOrder(operator, left, right, noOverload)
}

/** Adds the position of a node to errors of functions. Caches the last one: a node usually returns the same error. */
export function locator(compilation: Compilation, node: Node): (error: CelError) => CelError {
  let known: { readonly from: CelError; readonly located: CelError } | undefined
  return (error) => {
    if (error.offset !== undefined) return error
    if (known?.from !== error) known = { from: error, located: compilation.error(node, error.code, error.message) }
    return known.located
  }
}

function compileArithmetic(compilation: Compilation, node: BinaryNode, left: Evaluate, right: Evaluate, compute: Arithmetic): Code {
  const noOverload = compilation.error(node, 'no_such_overload', `${node.operator} does not apply to these types`)
  const locate = locator(compilation, node)
  return fromLive((frame) => {
    const a = left(frame)
    if (a instanceof CelError) return a
    const b = right(frame)
    if (b instanceof CelError) return b
    const result = compute(a, b)
    return result === undefined ? noOverload : result instanceof CelError ? locate(result) : result
  })
}

function compileEquality(left: Code, right: Code, isPositive: boolean): Code {
  const literal = right.literal?.value
  if (typeof literal === 'string' && literal.length <= 64) return fromStored(equalsText(left.stored, literal, isPositive))
  // A number of the host, an int and a double compare in the same way.
  const number = typeof literal === 'bigint' ? Number(literal) : NaN
  if (Number.isSafeInteger(number)) return fromStored(equalsNumber(left.stored, literal, number, isPositive))
  if (left.literal && !right.literal) return compileEquality(right, left, isPositive)
  const a = left.stored
  const b = right.stored
  return fromStored((frame) => {
    const x = a(frame)
    if (x instanceof CelError) return x
    const y = b(frame)
    return y instanceof CelError ? y : (findRepeated(x, y) ?? isEqual(x, y) === isPositive)
  })
}

function equalsText(read: Read, text: string, isPositive: boolean): Read {
  return (frame) => {
    const value = read(frame)
    if (typeof value === 'string') return (value === text) === isPositive
    return value instanceof CelError ? value : (findRepeated(value, text) ?? isEqual(value, text) === isPositive)
  }
}

/** An error if one of the values is a repeated header and the other one is no list: some servers read its first line, others its last. */
function findRepeated(a: Stored, b: Stored): CelError | undefined {
  return (a instanceof RepeatedHeader && !Array.isArray(b)) || (b instanceof RepeatedHeader && !Array.isArray(a)) ? repeatedHeader : undefined
}

function equalsNumber(read: Read, literal: Value, number: number, isPositive: boolean): Read {
  return (frame) => {
    const value = read(frame)
    if (typeof value === 'number') return (value === number) === isPositive
    return value instanceof CelError ? value : isEqual(value, literal) === isPositive
  }
}

const orders: Readonly<Record<string, (order: number) => boolean>> = {
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
}

function compileOrder(operator: BinaryOperator, left: Code, right: Code, noOverload: CelError): Code {
  const holds = orders[operator] ?? (() => false)
  const a = left.stored
  const literal = right.literal === undefined ? undefined : toNumeric(right.literal.value)
  const number = typeof literal === 'bigint' ? Number(literal) : literal
  const isExact = typeof number === 'number' && (typeof literal === 'number' || Number.isSafeInteger(number))
  const b = right.stored
  return fromStored((frame) => {
    const x = a(frame)
    if (isExact && typeof x === 'number') return x === number ? holds(0) : holds(x < number ? -1 : x > number ? 1 : NaN)
    if (x instanceof CelError) return x
    const y = b(frame)
    if (y instanceof CelError) return y
    const order = compareOrder(x, y)
    return order === undefined ? noOverload : holds(order)
  })
}

function compileIn(left: Read, right: Read, noOverload: CelError): Code {
  return fromStored((frame) => {
    const value = left(frame)
    if (value instanceof CelError) return value
    const container = right(frame)
    if (container instanceof CelError) return container
    if (value instanceof RepeatedHeader) return repeatedHeader
    if (Array.isArray(container)) return includes(container, value)
    if (!isMap(container)) return noOverload
    const key = toKey(value)
    if (key !== undefined) return getKey(container, key) !== undefined
    // A non-integral double equals no key; other types, such as null and lists, cannot be keys.
    return toNumeric(value) === undefined ? noOverload : false
  })
}

function includes(list: readonly Stored[], value: Stored): boolean {
  chargeLength(list.length)
  for (const item of list) {
    if (typeof value === 'string' && typeof item === 'string' ? item === value : isEqual(item, value)) return true
  }
  if (typeof value !== 'string') charge(list.length >>> 3)
  return false
}
