import type { CallNode, Node } from '../ast.ts'
import { charge } from '../budget.ts'
import { CelError, combineErrors, inLoop } from '../error.ts'
import { sortBy } from '../functions/collections.ts'
import { CelMap, getKey, isMap, keysOf, toKey } from '../map.ts'
import { load } from '../values.ts'
import type { Stored, Value } from '../values.ts'
import { fromLiteral, fromLive, fromStored } from './code.ts'
import type { Code, Compilation, Frame, Scope } from './code.ts'

type Read = (frame: Frame) => Stored

/** A macro over the elements of a list or the keys of a map. */
interface Loop {
  readonly node: CallNode
  readonly compilation: Compilation
  readonly range: Read
  /** Slots of the variables: of the element or key, or of the index or key and the value. */
  readonly slots: readonly number[]
  /** The arguments after the variables. */
  readonly bodies: readonly Code[]
}

type Expand = (loop: Loop) => Code

/** Keyed by name and number of arguments. The first entry is the number of variables among the arguments. */
const macros: ReadonlyMap<string, readonly [variables: 1 | 2, Expand]> = new Map([
  ['exists/2', [1, (loop) => expandQuantifier(loop, true)]],
  ['exists/3', [2, (loop) => expandQuantifier(loop, true)]],
  ['all/2', [1, (loop) => expandQuantifier(loop, false)]],
  ['all/3', [2, (loop) => expandQuantifier(loop, false)]],
  ['exists_one/2', [1, expandExistsOne]],
  ['exists_one/3', [2, expandExistsOne]],
  ['existsOne/2', [1, expandExistsOne]],
  ['existsOne/3', [2, expandExistsOne]],
  ['filter/2', [1, expandFilter]],
  ['map/2', [1, expandList]],
  ['map/3', [1, expandList]],
  ['transformList/3', [2, expandList]],
  ['transformList/4', [2, expandList]],
  ['transformMap/3', [2, expandTransformMap]],
  ['transformMap/4', [2, expandTransformMap]],
  ['transformMapEntry/3', [2, expandTransformEntry]],
  ['transformMapEntry/4', [2, expandTransformEntry]],
  ['mapValues/2', [1, expandMapValues]],
  ['filterKeys/2', [1, expandFilterKeys]],
  ['sortBy/2', [1, expandSortBy]],
])

/** Compiles a macro call; undefined if the call is not one. */
export function compileMacro(compilation: Compilation, node: CallNode, scope: Scope | undefined): Code | undefined {
  const macro = node.target && macros.get(`${node.name}/${node.args.length}`)
  if (!macro || !node.target) return undefined
  const [count, expand] = macro
  const range = compilation.compile(node.target, scope).stored
  const slots: number[] = []
  const names = new Set<string>()
  let inner = scope
  for (const arg of node.args.slice(0, count)) {
    const name = variableName(arg)
    if (name === undefined || names.has(name)) {
      return fromLiteral(
        compilation.report(arg, 'invalid', `${node.name}() takes ${count === 1 ? 'the name of a variable' : 'the names of two variables'} first`),
      )
    }
    names.add(name)
    inner = compilation.bind(name, inner)
    slots.push(inner.slot)
  }
  const bodies = node.args.slice(count).map((arg) => compilation.compile(arg, inner))
  return expand({ node, compilation, range, slots, bodies })
}

/** Name of the variable that a macro declares; undefined if the argument is not a plain name. */
export function variableName(node: Node): string | undefined {
  return node.kind === 'ident' && !node.isAbsolute ? node.name : undefined
}

/** One iteration, with the index or key and the element. Any result but undefined ends the loop. */
type Iteration = (frame: Frame, key: Stored, element: Stored) => Stored

type Run = (frame: Frame, values: Stored, iteration: Iteration) => Stored

/** Iterates over the values. One variable is the element or key; two are the index or key and the value. */
function iterate({ slots: [first = 0, second], node, compilation }: Loop, what: 'list' | 'map' | 'any' = 'any'): Run {
  const noRange = compilation.error(node, 'no_such_overload', `${node.name}() needs a ${what === 'any' ? 'list or map' : what}`)
  return (frame, values, iteration) => {
    if (values instanceof CelError) return values
    const { slots } = frame
    if (Array.isArray(values) && what !== 'map') {
      for (let i = 0; i < values.length; i++) {
        charge(1)
        const element: Stored = values[i]
        slots[first] = second === undefined ? element : BigInt(i)
        if (second !== undefined) slots[second] = element
        const result = iteration(frame, second === undefined ? element : slots[first], element)
        if (result !== undefined) return result instanceof CelError ? inLoop(result) : result
      }
      return undefined
    }
    if (!isMap(values) || what === 'list') return noRange
    for (const stored of keysOf(values)) {
      charge(1)
      const key = toKey(stored)
      if (key === undefined) continue
      slots[first] = stored
      const element = second === undefined ? stored : getKey(values, key)
      if (element instanceof CelError) return inLoop(element)
      if (second !== undefined) slots[second] = element
      const result = iteration(frame, stored, element)
      if (result !== undefined) return result instanceof CelError ? inLoop(result) : result
    }
    return undefined
  }
}

function noBoolOf({ compilation, node }: Loop): CelError {
  return compilation.error(node, 'no_such_overload', `the condition of ${node.name}() is not a bool`)
}

/**
 * `exists` and `all` combine their elements as `||` and `&&` do: a decisive element wins over errors of others. `exists` skips elements without a value,
 * `all` must not.
 */
function expandQuantifier(loop: Loop, decisive: boolean): Code {
  const run = iterate(loop)
  const condition = loop.bodies[0]?.stored ?? (() => null)
  const noBool = noBoolOf(loop)
  const { range, slots } = loop
  const errorOf = (value: Stored): CelError => (value instanceof CelError ? (decisive ? value : inLoop(value)) : noBool)
  const [slot = 0] = slots
  return fromStored((frame) => {
    let failure: CelError | undefined
    const values = range(frame)
    if (slots.length === 1 && Array.isArray(values)) {
      // The most common loop: avoid a closure for each evaluation.
      for (let i = 0; i < values.length; i++) {
        charge(1)
        frame.slots[slot] = values[i]
        const value = condition(frame)
        if (value === decisive) return decisive
        if (value !== !decisive) failure = combineErrors(decisive, failure, errorOf(value))
      }
      return failure ?? !decisive
    }
    const result = run(frame, values, () => {
      const value = condition(frame)
      if (value === decisive) return decisive
      if (value !== !decisive) failure = combineErrors(decisive, failure, errorOf(value))
      return undefined
    })
    return result ?? failure ?? !decisive
  })
}

function expandExistsOne(loop: Loop): Code {
  const run = iterate(loop)
  const condition = loop.bodies[0]?.stored ?? (() => null)
  const noBool = noBoolOf(loop)
  return fromStored((frame) => {
    let count = 0
    const failure = run(frame, loop.range(frame), () => {
      const value = condition(frame)
      if (value === true) count++
      return typeof value === 'boolean' ? undefined : value instanceof CelError ? value : noBool
    })
    return failure ?? count === 1
  })
}

function expandFilter(loop: Loop): Code {
  const run = iterate(loop)
  const condition = loop.bodies[0]?.stored ?? (() => null)
  const noBool = noBoolOf(loop)
  return fromStored((frame) => {
    const kept: Stored[] = []
    const failure = run(frame, loop.range(frame), (_, __, element) => {
      const value = condition(frame)
      if (value === true) kept.push(element)
      return typeof value === 'boolean' ? undefined : value instanceof CelError ? value : noBool
    })
    return failure ?? kept
  })
}

/** Compiles the body of a macro and the optional condition before it. The result is undefined if the condition is false. */
function compileBody(loop: Loop): Read {
  const [first, second] = loop.bodies
  const body = (second ?? first)?.stored ?? (() => null)
  if (second === undefined || first === undefined) return body
  const condition = first.stored
  const noBool = noBoolOf(loop)
  return (frame) => {
    const value = condition(frame)
    if (value === true) return body(frame)
    if (value === false) return undefined
    return value instanceof CelError ? value : noBool
  }
}

function expandList(loop: Loop): Code {
  const run = iterate(loop)
  const body = compileBody(loop)
  return fromStored((frame) => {
    const list: Stored[] = []
    const failure = run(frame, loop.range(frame), () => {
      const value = body(frame)
      if (value instanceof CelError) return value
      if (value !== undefined) list.push(value)
      return undefined
    })
    return failure ?? list
  })
}

function buildMap(loop: Loop, run: Run, add: (map: CelMap, frame: Frame, key: Stored) => Stored): Code {
  return fromStored((frame) => {
    const map = new CelMap()
    return run(frame, loop.range(frame), (_, key) => add(map, frame, key)) ?? map
  })
}

function expandTransformMap(loop: Loop): Code {
  const body = compileBody(loop)
  return buildMap(loop, iterate(loop), (map, frame, key) => {
    const value = body(frame)
    if (value instanceof CelError) return value
    if (value !== undefined) map.set(key, value)
    return undefined
  })
}

/** Merges the maps that the body returns; a duplicate key is an error. */
function expandTransformEntry(loop: Loop): Code {
  const body = compileBody(loop)
  const noMap = loop.compilation.error(loop.node, 'no_such_overload', 'transformMapEntry() needs maps')
  return buildMap(loop, iterate(loop), (map, frame) => {
    const entries = body(frame)
    if (entries === undefined || entries instanceof CelError) return entries
    if (!isMap(entries)) return noMap
    for (const stored of keysOf(entries)) {
      const key = toKey(stored)
      const failure = key === undefined ? undefined : map.add(load(stored), load(getKey(entries, key)))
      if (failure) return failure
    }
    return undefined
  })
}

/** `m.mapValues(v, expr)`: the variable is the value. */
function expandMapValues(loop: Loop): Code {
  const [slot = 0] = loop.slots
  const key = loop.compilation.bind('', undefined).slot
  const body = loop.bodies[0]?.stored ?? (() => null)
  return buildMap(loop, iterate({ ...loop, slots: [key, slot] }, 'map'), (map, frame, name) => {
    const value = body(frame)
    if (value instanceof CelError) return value
    map.set(name, value)
    return undefined
  })
}

/** `m.filterKeys(k, condition)`: the entries whose keys satisfy the condition. */
function expandFilterKeys(loop: Loop): Code {
  const [slot = 0] = loop.slots
  const valueSlot = loop.compilation.bind('', undefined).slot
  const condition = loop.bodies[0]?.stored ?? (() => null)
  const noBool = noBoolOf(loop)
  return buildMap(loop, iterate({ ...loop, slots: [slot, valueSlot] }, 'map'), (map, frame, name) => {
    const value = condition(frame)
    if (value === true) map.set(name, frame.slots[valueSlot])
    return typeof value === 'boolean' ? undefined : value instanceof CelError ? value : noBool
  })
}

function expandSortBy(loop: Loop): Code {
  const run = iterate(loop, 'list')
  const body = loop.bodies[0]?.stored ?? (() => null)
  const noOrder = loop.compilation.error(loop.node, 'no_such_overload', 'the keys of sortBy() have no order')
  return fromLive((frame): Value => {
    const list: Stored[] = []
    const keys: Stored[] = []
    const failure = run(frame, loop.range(frame), (_, __, element) => {
      const key = body(frame)
      if (key instanceof CelError) return key
      list.push(element)
      keys.push(key)
      return undefined
    })
    return failure ?? sortBy(list, keys) ?? noOrder
  })
}
