import { describe, expect, test } from '@jest/globals'
import { fc } from '../property-testing.ts'
import { environments } from './environment.ts'
import { CelError } from './error.ts'
import { HeaderView } from './headers.ts'
import { toHost } from './host.ts'
import { evalBody, evalHost, evalString } from './outcome.ts'
import { compile, compilePermissive, isParseError } from './program.ts'
import { HostMap } from './values.ts'

/** CPU time of this process, so that other programs do not count. Without a budget most of these expressions run for hours to years. */
const MAX_CPU_MS = 30_000
const cpuMs = (): number => process.cpuUsage().user / 1000

const list = `[${'0,'.repeat(200)}0]`
const nested = (levels: number): string => (levels === 0 ? 'true' : `${list}.all(x${levels}, ${nested(levels - 1)})`)
const doubling = (value: string, levels: number): string => {
  let source = 'x0'
  for (let i = levels; i > 0; i--) source = `cel.bind(x${i}, x${i - 1} + x${i - 1}, ${i === levels ? `x${levels}` : source})`
  return `cel.bind(x0, ${value}, ${source})`
}
/** A list of lists of lists … that share their elements: small in memory, huge when serialized. */
const sharing = (levels: number): string => {
  let source = `x${levels}`
  for (let i = levels; i > 0; i--) source = `cel.bind(x${i}, [x${i - 1}, x${i - 1}, x${i - 1}, x${i - 1}], ${source})`
  return `cel.bind(x0, ["abc"], ${source})`
}

describe('an expression bomb', () => {
  const bombs: Readonly<Record<string, string>> = {
    'nested macros': nested(4),
    'nested maps of lists': `${list}.map(a, ${list}.map(b, ${list}.map(c, a + b + c)))`,
    'strings that double': doubling('"0123456789abcdef"', 40),
    'bytes that double': doubling('b"0123456789abcdef"', 40),
    'lists that double': doubling('[1, 2, 3, 4]', 40),
    'replacements that multiply': `cel.bind(a, "${'x'.repeat(1000)}", a.replace("x", a).replace("x", a).replace("x", a))`,
    'equality of shared lists': `cel.bind(l, ${sharing(30)}, l == ${sharing(30)})`,
    'JSON of shared lists': `toJson(${sharing(30)})`,
    'format of shared lists': `"%s".format([${sharing(30)}])`,
    'many searches in a list': `cel.bind(l, lists.range(20000), l.all(x, !((x + 100000) in l)))`,
    'distinct() of many elements': 'lists.range(200000).distinct().size()',
    'patterns compiled at run time': 'lists.range(100000).all(x, !"a".matches(string(x) + "(a|b)*c{50}"))',
    'a pattern that backtracks in other engines': `lists.range(100000).all(x, !("${'a'.repeat(2000)}!".matches("^(a+)+$")))`,
    'patterns that repeat themselves': `lists.range(1000).all(x, !"a".matches(string(x) + "((abcdefgh){100}){10}"))`,
    'many hashes': `lists.range(100000).all(x, sha256.encode("${'a'.repeat(2000)}") != "")`,
  }
  test.each(Object.entries(bombs))('of %s ends with an error in bounded time', (_, source) => {
    const program = compile(source)
    if (isParseError(program)) throw new Error(JSON.stringify(program.problems))
    const start = cpuMs()
    const result = program.eval({})
    expect(cpuMs() - start).toBeLessThan(MAX_CPU_MS)
    expect(result).toBeInstanceOf(CelError)
    expect(['budget_exceeded', 'overflow']).toContain((result as CelError).code)
  })

  test('of a result that is huge when serialized is not converted for the host', () => {
    const program = compilePermissive(sharing(30)).program
    expect([evalString, evalBody, evalHost].map((evaluate) => evaluate(program, {}))).toEqual([undefined, undefined, undefined])
  })

  test('is not absorbed by ||', () => {
    expect(compilePermissive(`${nested(4)} || true`).program.eval({})).toMatchObject({ code: 'budget_exceeded' })
  })

  test('does not share its budget with the evaluation that it runs in', () => {
    const once = compilePermissive(`${list}.all(x, ${list}.all(y, true))`).program
    class Nesting extends HostMap {
      get(): unknown {
        return once.eval({})
      }
      keys(): Iterable<string> {
        return []
      }
    }
    const outer = compilePermissive(`lists.range(30).all(x, host.member)`).program
    expect(outer.eval({ host: new Nesting() })).toBe(true)
  })

  test('of data that nests deeper than the stack ends with an error', () => {
    const deep = (): unknown => JSON.parse('['.repeat(100_000) + ']'.repeat(100_000))
    const result = compilePermissive('request.a == request.b').program.eval({ request: { a: deep(), b: deep() } })
    expect(result).toBeInstanceOf(CelError)
  })

  test('in a host view that throws ends with an error that does not quote it', () => {
    class Broken extends HostMap {
      get(): unknown {
        throw new Error('secret text')
      }
      keys(): Iterable<string> {
        return []
      }
    }
    const result = compilePermissive('request.path').program.eval({ request: new Broken() })
    expect(result).toBeInstanceOf(CelError)
    expect(JSON.stringify(result)).not.toContain('secret')
  })
})

test('properties of Object.prototype are neither variables nor members', () => {
  const prototype = Object.prototype as unknown as Record<string, unknown>
  const program = compilePermissive('has(request.admin) || request.admin == true || jwt.sub == "root"', environments.request).program
  Object.defineProperty(prototype, 'jwt', { value: { sub: 'root' }, configurable: true, enumerable: false })
  Object.defineProperty(prototype, 'admin', { value: true, configurable: true, enumerable: false })
  try {
    expect(program.eval({ request: {} })).toMatchObject({ code: 'no_such_key' })
  } finally {
    delete prototype['jwt']
    delete prototype['admin']
  }
})

/** Expressions composed from words of the language: most compile, many fail when evaluated. */
const leaf = fc.constantFrom(
  'request.path',
  'jwt.sub',
  'jwt.n',
  'jwt.list',
  'jwt',
  'jwt.missing',
  'request.headers["x-a"]',
  'request.headers',
  '1',
  '0',
  '-5u',
  '2.5',
  '"a"',
  'b"\\xff"',
  'null',
  'true',
  '[]',
  '{}',
)
const expression = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc
      .tuple(tie('node'), fc.constantFrom('+', '-', '*', '/', '%', '==', '!=', '<', '>=', '&&', '||', 'in'), tie('node'))
      .map(([a, op, b]) => `(${a} ${op} ${b})`),
    fc
      .tuple(
        fc.constantFrom(
          'int',
          'uint',
          'double',
          'string',
          'bytes',
          'bool',
          'timestamp',
          'duration',
          'json',
          'toJson',
          'base64.decode',
          'url.decode',
          'ip',
          'cidr',
          'size',
          'type',
          'fail',
          'math.abs',
          'unvalidatedJwtPayload',
          'form.encode',
        ),
        tie('node'),
      )
      .map(([f, a]) => `${f}(${a})`),
    fc
      .tuple(
        tie('node'),
        fc.constantFrom('startsWith', 'matches', 'split', 'charAt', 'cookie', 'merge', 'format', 'containsIP', 'getHours', 'flatten'),
        tie('node'),
      )
      .map(([a, f, b]) => `(${a}).${f}(${b})`),
    fc
      .tuple(tie('node'), fc.constantFrom('map', 'filter', 'exists', 'all', 'mapValues', 'sortBy'), tie('node'))
      .map(([a, f, b]) => `(${a}).${f}(v, ${b} == v)`),
    fc.tuple(tie('node'), tie('node')).map(([a, b]) => `(${a})[${b}]`),
    fc.tuple(tie('node'), tie('node'), tie('node')).map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
    fc.tuple(tie('node'), tie('node')).map(([a, b]) => `{${a}: ${b}}`),
  ),
})).node

describe('properties', () => {
  test('evaluation and conversion never throw, and errors contain no data', () => {
    const secret = fc.stringMatching(/^S3CRET[a-z0-9]{6,12}$/)
    fc.assert(
      fc.property(expression, secret, fc.jsonValue(), (source, word, data) => {
        const { program } = compilePermissive(source)
        const context = {
          request: { path: `/${word}`, headers: new HeaderView({ raw: ['x-a', word, 'x-b', word] }) },
          jwt: { sub: word, n: 12_345_678_901, list: [word, 98_765_432_109, { [word]: word }], data },
        }
        const result = program.eval(context)
        if (!(result instanceof CelError)) {
          toHost(result)
          return
        }
        const text = `${JSON.stringify(result)} ${result.toString()} ${result.message}`
        expect(text).not.toContain('S3CRET')
        expect(text).not.toMatch(/12345678901|98765432109/)
      }),
      { numRuns: 3000 },
    )
  })

  test('compilation never throws', () => {
    const token = fc.constantFrom(
      'a',
      '.',
      '?',
      '[',
      ']',
      '(',
      ')',
      '{',
      '}',
      ':',
      ',',
      '"',
      "'''",
      '\\',
      '1',
      '1.5e3',
      '0x',
      'u',
      '-',
      '!',
      '&&',
      '||',
      'in',
      ' ',
      '\n',
      '//',
      '`',
      'r"',
      "b'",
      '==',
      'has',
      'true',
      'cel.bind',
      '🙂',
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(token, { maxLength: 30 }).map((parts) => parts.join('')),
        ),
        (source) => {
          const { program, problems } = compilePermissive(source)
          program.eval({})
          for (const { offset, line, column } of problems) expect(offset >= 0 && offset <= source.length && line > 0 && column > 0).toBe(true)
        },
      ),
      { numRuns: 3000 },
    )
  })
})

test('work of the host between evaluations does not use up their budgets', () => {
  const { program } = compilePermissive('[1, 2, 3].map(x, [x])')
  for (let i = 0; i < 200_000; i++) toHost([i])
  expect(toHost(program.eval({}))).toEqual([[1], [2], [3]])
})
