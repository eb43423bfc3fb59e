import { describe, expect, test } from '@jest/globals'
import { fc } from '../property-testing.ts'
import { RE2JS } from 're2js'
import { compileRegex, isRegexError } from './index.ts'
import { toLinearSource } from './linear.ts'

const matches = (pattern: string, text: string): boolean => {
  const regex = compileRegex(pattern)
  if (isRegexError(regex)) throw new Error(regex.error)
  return regex.test(text)
}

describe('compileRegex', () => {
  test.each([
    ['/api/v[0-9]+', '/api/v12', true],
    ['/api/v[0-9]+', '/api/v12/x', false],
    ['/api/v[0-9]+', 'x/api/v1', false],
    ['^/a$', '/a', true],
    ['a|ab', 'ab', true],
    ['', '', true],
    ['', 'a', false],
    ['/[^/]+/list', '/svc.Name/list', true],
    ['/[^/]+/list', '/svc/Name/list', false],
    ['.', '\r', true],
    ['.', '\n', false],
    ['\\s', '\v', false],
    ['\\s', '\u00a0', false],
    ['\\w+', 'é', false],
    ['(?i)get', 'GeT', true],
    ['a{2,3}', 'aaaa', false],
    ['(a+)+b', 'aaab', true],
    ['/(red|green)(/.*)?', '/green/x', true],
    ['a$|^b', 'b', true],
  ])('%j matches %j: %j', (pattern, text, expected) => {
    expect(matches(pattern, text)).toBe(expected)
  })

  test.each([
    ['(?=a)', 'invalid or unsupported Perl syntax'],
    ['(?<=a)b', 'invalid'],
    ['(a)\\1', 'invalid escape sequence'],
    ['(', 'missing closing )'],
    ['a**', 'invalid nested repetition operator'],
    ['x'.repeat(5000), 'at most 4096'],
    ['a{1000}'.repeat(36), 'repeats too much'],
    ['(?:a?){1000}(?:b?){1000}', 'repeats too much'],
  ])('rejects %s', (pattern, gist) => {
    const result = compileRegex(pattern)
    expect(isRegexError(result) ? result.error : 'accepted').toContain(gist)
  })

  test('compiles or rejects a large pattern in bounded time', () => {
    for (const pattern of ['a{1000}'.repeat(500), '\\pL{1000}'.repeat(300), '((a{10}){10}){10}', '(?i)[a-zé-ÿ]{900}', '(.{0,500}x){2}']) {
      const startedAt = performance.now()
      compileRegex(pattern)
      expect([pattern, performance.now() - startedAt < 30_000]).toEqual([pattern, true])
    }
  })

  test.each([
    ['(a+)+b', 'a'],
    ['(a|a)*b', 'a'],
    ['a*a*a*a*a*a*b', 'a'],
    ['.*.*.*.*x', 'a'],
    ['(a|aa)+b', 'a'],
    ['a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?b', 'a'],
    ['(x|xx)(x|xx)(x|xx)(x|xx)(x|xx)(x|xx)(x|xx)(x|xx)(x|xx)(x|xx)(x|xx)(x|xx)(x|xx)(x|xx)(x|xx)(x|xx)(x|xx)(x|xx)b', 'x'],
    ['.*[ab]{900}c', 'a'],
  ])('%s matches in linear time', (pattern, filler) => {
    const startedAt = performance.now()
    expect(matches(pattern, filler.repeat(8192))).toBe(false)
    // Quadratic time would be minutes.
    expect(performance.now() - startedAt).toBeLessThan(60_000)
  })
})

describe('the native engine', () => {
  test.each(['/user/([^/]+)/view', '/api/.*', '.*\\.png', '/v(1|2|30)/x', '[a-z0-9-]+@[a-z.]{2,9}', 'https?://x', '/[^/]+/Method', '\\d{3}-\\d{2}'])(
    'runs %s',
    (pattern) => {
      expect(toLinearSource(pattern)).toBeDefined()
    },
  )

  test.each(['(a+)+', '.*.*', '.*a.*', 'a?a?a', '(ab|a)c', '(?i)a', '\\pL', '[[:alpha:]]', '(a|b)*', 'é', '\\bx', '.*[ab]{900}c'])(
    'leaves %s to RE2',
    (pattern) => {
      expect(toLinearSource(pattern)).toBeUndefined()
    },
  )

  const atom = fc.constantFrom('a', 'b', '/', '.', '[ab]', '[^/]', '\\d', '\\W', '[a-c-]', '\\.', '(a|b)', '(ab|c)', '(?:a/|ab)', '[--a]', '[^\\d_]')
  const piece = fc.tuple(atom, fc.constantFrom('', '', '', '*', '+', '?', '{2}', '{1,2}', '*?')).map(([set, times]) => set + times)
  const branch = fc.array(piece, { maxLength: 5 }).map((pieces) => pieces.join(''))
  const pattern = fc.array(branch, { minLength: 1, maxLength: 3 }).map((branches) => branches.join('|'))
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '/', '.', '-', '1', '_', '\n', 'é', '😀'), maxLength: 8 })

  test('property: agrees with RE2 on every pattern that it runs', () => {
    let native = 0
    fc.assert(
      fc.property(pattern, fc.array(text, { minLength: 1, maxLength: 12 }), (source, texts) => {
        const linear = toLinearSource(source)
        if (linear === undefined) return
        native++
        const re2 = RE2JS.compile(source)
        const regex = new RegExp(linear, 'u')
        for (const each of texts) expect([source, each, regex.test(each)]).toEqual([source, each, re2.testExact(each)])
      }),
      { numRuns: 1500 },
    )
    expect(native).toBeGreaterThan(300)
  })
})
