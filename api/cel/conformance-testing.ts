import type { getConformanceSuite } from '@bufbuild/cel-spec/testdata/tests.js'
import { toText } from './convert.ts'
import { CelMap, getKey, isMap, keysOf, toKey } from './map.ts'
import { Double, Type, Uint, load, store } from './values.ts'
import type { Stored, Value } from './values.ts'

type Suite = ReturnType<typeof getConformanceSuite>
type SimpleTest = Suite['tests'][number]['original']
type ProtoValue = Extract<SimpleTest['resultMatcher'], { case: 'value' }>['value']

/** A test of the official CEL conformance suite in terms of this package. */
export interface ConformanceCase {
  readonly name: string
  readonly expr: string
  readonly container: string
  readonly isCheckOnly: boolean
  readonly root: object
  readonly variables: ReadonlySet<string>
  readonly expected: { readonly isError: boolean; readonly matches: (value: Value) => boolean }
  /** The test as text, to find the features that it needs. */
  readonly text: string
}

/** Converts a test of the suite. */
export function collect(file: string, section: string, test: SimpleTest): ConformanceCase {
  const root: Record<string, Stored> = {}
  for (const [name, { kind }] of Object.entries(test.bindings)) if (kind.case === 'value') root[name] = fromProto(kind.value)
  const result = test.resultMatcher
  const value = result.case === 'value' ? result.value : result.case === 'typedResult' ? result.value.result : undefined
  const isError = result.case === 'evalError' || result.case === 'anyEvalErrors'
  const wanted = value === undefined ? true : load(fromProto(value))
  return {
    name: `${file}/${section}/${test.name}`,
    expr: test.expr,
    container: test.container,
    isCheckOnly: test.checkOnly,
    root,
    variables: new Set(Object.keys(root)),
    expected: { isError, matches: (actual) => isSame(actual, wanted) },
    text: JSON.stringify([test.expr, test.bindings, result, test.typeEnv], (_, member: unknown) => (typeof member === 'bigint' ? String(member) : member)),
  }
}

/** Reason to skip a test; undefined if it runs. */
export function findReason({ name, container, isCheckOnly, text }: ConformanceCase): string | undefined {
  if (isCheckOnly) return 'type checker only'
  if (container !== '' || /^(?:proto2|proto3|proto2_ext|dynamic|enums|wrappers)\//.test(name)) return 'containers and protobuf packages'
  if (/TestAllTypes|NestedTestAll|objectValue|GlobalEnum|google\.protobuf\.(?!Timestamp\b|Duration\b)/.test(text)) return 'protobuf messages'
  if (/cel\.(?:block|index|iterVar)\(/.test(text)) return 'cel.block, which optimizers write, not people'
  return undefined
}

function fromProto({ kind }: ProtoValue): Stored {
  switch (kind.case) {
    case 'uint64Value':
      return new Uint(kind.value)
    case 'doubleValue':
      return store(kind.value)
    case 'nullValue':
      return null
    case 'typeValue':
      return new Type(kind.value)
    case 'listValue':
      return kind.value.values.map(fromProto)
    case 'mapValue': {
      const map = new CelMap()
      for (const { key, value } of kind.value.entries) if (key && value) map.set(load(fromProto(key)), fromProto(value))
      return map
    }
    default:
      return kind.value
  }
}

/** Equality with types: the int 1 is not the double 1. */
function isSame(a: Value, b: Value): boolean {
  if (typeof a !== typeof b) return false
  if (typeof a === 'number') return Object.is(a, b) || a === b
  if (a instanceof Uint || a instanceof Double) return b instanceof a.constructor && (a as Uint).value === (b as Uint).value
  if (a instanceof Uint8Array) return b instanceof Uint8Array && Buffer.compare(a, b) === 0
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => isSame(load(item), load(b[i])))
  if (isMap(a) && isMap(b)) {
    const keys = keysOf(a)
    return keys.length === keysOf(b).length && keys.every((key) => isSameMember(a, b, key))
  }
  return a === b || (a instanceof Type && b instanceof Type && toText(a) === toText(b))
}

function isSameMember(a: object, b: object, stored: Stored): boolean {
  const key = toKey(stored)
  return key !== undefined && isSame(load(getKey(a, key)), load(getKey(b, key)))
}
