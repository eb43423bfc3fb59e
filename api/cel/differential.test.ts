import { celEnv, celUint, isCelError, isCelList, isCelMap, isCelUint, parse, plan } from '@bufbuild/cel'
import type { CelInput } from '@bufbuild/cel'
import { strings } from '@bufbuild/cel/ext'
import { expect, test } from '@jest/globals'
import { evaluate as evaluateCelJs } from 'cel-js'
import { fc } from '../property-testing.ts'
import { CelError } from './error.ts'
import { getKey, isMap, keysOf, toKey } from './map.ts'
import { compilePermissive } from './program.ts'
import { Double, Uint, load } from './values.ts'
import type { Value } from './values.ts'

/** A value and its type as text, in the same form for both engines. All errors have the same text. */
function describeOurs(value: Value): string {
  if (value instanceof CelError) return 'error'
  if (typeof value === 'bigint') return `int ${value}`
  if (typeof value === 'number') return `double ${Object.is(value, -0) ? 0 : value}`
  if (value instanceof Uint) return `uint ${value.value}`
  if (value instanceof Double) return describeOurs(value.value)
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('hex')}`
  if (Array.isArray(value)) return `[${value.map((item) => describeOurs(load(item))).join(', ')}]`
  if (isMap(value)) {
    return describeEntries(
      keysOf(value).map((stored) => {
        const key = toKey(stored)
        return [describeOurs(load(stored)), key === undefined ? '' : describeOurs(load(getKey(value, key)))]
      }),
    )
  }
  return JSON.stringify(value)
}

function describeTheirs(value: unknown): string {
  if (isCelError(value)) return 'error'
  if (typeof value === 'bigint') return `int ${value}`
  if (typeof value === 'number') return `double ${Object.is(value, -0) ? 0 : value}`
  if (isCelUint(value)) return `uint ${value.value}`
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('hex')}`
  if (isCelList(value)) return `[${[...value].map(describeTheirs).join(', ')}]`
  if (isCelMap(value)) return describeEntries([...value].map(([key, member]) => [describeTheirs(key), describeTheirs(member)]))
  return JSON.stringify(value)
}

function describeEntries(entries: readonly (readonly [string, string])[]): string {
  return `{${entries
    .map(([key, member]) => `${key}: ${member}`)
    .toSorted()
    .join(', ')}}`
}

const text = fc.constantFrom('""', '"a"', '"ab"', '"Ab-1"', '"äx"', 's')
const int = fc.oneof(fc.integer({ min: -20, max: 20 }).map(String), fc.constantFrom('9223372036854775807', '-9223372036854775808', '9007199254740993', 'i'))
const number = fc.oneof(
  int,
  fc.integer({ min: 0, max: 9 }).map((value) => `${value}u`),
  fc.constantFrom('1.5', '-0.0', '2.0', '1e300', 'u', 'd'),
)
const leaf = fc.oneof(text, number, fc.constantFrom('true', 'false', 'null', 'b"a\\xff"', '[]', '[1, "a", 2.0]', '{}', '{"a": 1, 2: "b", true: 3u}', 'l', 'm'))

/** Expressions that both engines support: operators, standard library, standard macros, strings extension. */
const shared = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc
      .tuple(tie('node'), fc.constantFrom('+', '-', '*', '/', '%', '==', '!=', '<', '<=', '>', '>=', 'in'), tie('node'))
      .map(([a, operator, b]) => `(${a} ${operator} ${b})`),
    fc.tuple(number, fc.constantFrom('+', '-', '*', '/', '%', '==', '!=', '<', '<=', '>', '>='), number).map(([a, operator, b]) => `(${a} ${operator} ${b})`),
    fc.tuple(fc.oneof(leaf, tie('node')), fc.constantFrom('&&', '||'), tie('node')).map(([a, operator, b]) => `((${a} == ${b}) ${operator} (${b} < ${a}))`),
    fc.tuple(fc.constantFrom('string', 'bytes', 'size', 'bool', 'dyn'), tie('node')).map(([name, a]) => `${name}(${a})`),
    // Numbers only: the other engine converts the empty string to 0.
    fc.tuple(fc.constantFrom('int', 'uint', 'double', 'string'), number).map(([name, a]) => `${name}(${a})`),
    fc.tuple(text, fc.constantFrom('startsWith', 'endsWith', 'contains', 'indexOf', 'lastIndexOf', 'split'), text).map(([a, name, b]) => `${a}.${name}(${b})`),
    fc.tuple(text, fc.constantFrom('charAt', 'substring'), int).map(([a, name, b]) => `${a}.${name}(${b})`),
    fc
      .tuple(text, fc.constantFrom('lowerAscii()', 'upperAscii()', 'trim()', 'size()', 'matches("^a?b")', 'replace("a", "xy")'))
      .map(([a, call]) => `${a}.${call}`),
    fc
      .tuple(fc.constantFrom('l', 'm', '[1, 2, 3]', '["a"]'), fc.constantFrom('exists', 'all', 'exists_one', 'filter', 'map'), tie('node'))
      .map(([a, name, b]) => `${a}.${name}(v, v == ${b})`),
    fc
      .tuple(fc.constantFrom('l', '[1, 2, 3]'), fc.constantFrom('map', 'filter', 'all'), fc.constantFrom('v + 1', 'v > 1', 'v in l', '[v]', '1 / (v - 2) > 0'))
      .map(([a, name, b]) => `${a}.${name}(v, ${b})`),
    // The other engine accepts bools and empty strings as list indices, and splits code points.
    fc.tuple(fc.constantFrom('l', '[1, 2u]'), number).map(([a, b]) => `${a}[${b}]`),
    fc.tuple(fc.constantFrom('m', '{1: 2, "a": 3}'), tie('node')).map(([a, b]) => `${a}[${b}]`),
    fc.constantFrom('m.a', 'm.none', 'has(m.a)', 'has(m.none)', 'm.a.b', 's.a'),
    fc.tuple(tie('node'), tie('node'), tie('node')).map(([a, b, c]) => `(${a} == ${b} ? ${c} : ${a})`),
  ),
})).node

const ours = { s: 'Abc', i: 7, u: new Uint(7n), d: 2.5, l: [1, 2, 'a'], m: { a: 1, b: 'x' } }
const theirs = {
  s: 'Abc',
  i: 7n,
  u: celUint(7n),
  d: 2.5,
  l: [1n, 2n, 'a'],
  m: new Map<string, CelInput>([
    ['a', 1n],
    ['b', 'x'],
  ]),
}

test('property: results equal those of @bufbuild/cel', () => {
  const env = celEnv({ funcs: strings })
  let agreed = 0
  fc.assert(
    fc.property(shared, (source) => {
      let expected: string
      try {
        expected = describeTheirs(plan(env, parse(source).expr)(theirs))
      } catch {
        // The other engine rejects some expressions when it plans them.
        expected = 'error'
      }
      const result = describeOurs(compilePermissive(source).program.eval(ours))
      expect([source, result]).toEqual([source, expected])
      if (expected !== 'error') agreed++
    }),
    { numRuns: 2000 },
  )
  // Two engines that always fail would agree, too.
  expect(agreed).toBeGreaterThan(400)
})

test('property: results equal those of cel-js', () => {
  const small = fc.integer({ min: 0, max: 50 }).map(String)
  const operand = fc.oneof(small, fc.constantFrom('n', 'o.x'))
  const numeric = fc.letrec<{ node: string }>((tie) => ({
    // Its division returns fractions, and it does not accept negative literals everywhere.
    node: fc.oneof(
      { depthSize: 'small' },
      operand,
      fc.tuple(tie('node'), fc.constantFrom('+', '-', '*'), tie('node')).map(([a, operator, b]) => `(${a} ${operator} ${b})`),
    ),
  })).node
  const condition = fc.oneof(
    fc.tuple(numeric, fc.constantFrom('==', '!=', '<', '<=', '>', '>='), numeric).map(([a, operator, b]) => `${a} ${operator} ${b}`),
    fc
      .tuple(fc.constantFrom('t', '"a"', '"b" + t'), fc.constantFrom('==', '!='), fc.constantFrom('t', '"ba"', '"a"'))
      .map(([a, operator, b]) => `${a} ${operator} ${b}`),
    fc.tuple(fc.constantFrom('1', '"a"', 'n'), fc.constantFrom('[1, 2]', '["a"]', 'k')).map(([a, b]) => `${a} in ${b}`),
    fc.constantFrom(
      'has(o.x)',
      'has(o.none)',
      'k.exists(v, v > 2)',
      'k.all(v, v > 2)',
      'k.exists_one(v, v == 2)',
      'size(k) == 3',
      'size(k.filter(v, v > 1)) == 2',
      'k.map(v, v + 1) == [2, 3, 4]',
    ),
  )
  const rule = fc.oneof(
    condition,
    fc.tuple(condition, fc.constantFrom('&&', '||'), condition).map(([a, operator, b]) => `(${a}) ${operator} (${b})`),
    condition.map((a) => `!(${a})`),
    fc.tuple(condition, numeric, numeric).map(([a, b, c]) => `((${a}) ? ${b} : ${c}) >= 0`),
  )
  const context = { n: 7, t: 'a', o: { x: 3 }, k: [1, 2, 3] }
  fc.assert(
    fc.property(rule, (source) => {
      expect([source, compilePermissive(source).program.eval(context)]).toEqual([source, evaluateCelJs(source, context)])
    }),
    { numRuns: 500 },
  )
})
