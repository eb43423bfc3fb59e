import { describe, expect, test } from '@jest/globals'
import { formatDiagnostic } from './diagnostic.ts'
import { environments } from './environment.ts'
import type { Phase } from './environment.ts'
import { CelError } from './error.ts'
import type { Flattened } from './host.ts'
import { evalBody, evalBool, evalCondition, evalDurationMs, evalHost, evalNumber, evalString, evalTimestampMs } from './outcome.ts'
import { compile, compilePermissive, isParseError, readsMember } from './program.ts'
import type { Program } from './program.ts'

function problemsOf(source: string, phase: Phase): string[] {
  const result = compile(source, environments[phase])
  return isParseError(result) ? result.problems.map(formatDiagnostic) : []
}

function good(source: string, phase?: Phase): Program {
  const result = compile(source, phase && environments[phase])
  if (isParseError(result)) throw new Error(result.problems.map(formatDiagnostic).join('; '))
  return result
}

describe('compile', () => {
  const cases: readonly (readonly [phase: Phase, source: string, problems: readonly string[]])[] = [
    ['request', 'request.method == "GET"', []],
    ['request', 'reqest.method', ['line 1, column 1: unknown variable "reqest"; did you mean "request"?']],
    ['request', 'true &&\n  Request.method == "GET"', ['line 2, column 3: unknown variable "Request"; did you mean "request"?']],
    ['request', 'response.code == 200', ['line 1, column 1: "response" is not known here, only once there is a response']],
    ['request', 'backend.name', []],
    ['request', 'llm.provider', ['line 1, column 1: "llm" is not known here, only once the backend is chosen']],
    ['backend', 'backend.name + llm.requestModel', []],
    ['response', 'response.code == 200 && llm.totalTokens > 5', []],
    ['llm', 'llmRequest.messages.size()', []],
    ['backend', 'llmRequest', ['line 1, column 1: "llmRequest" is not known here, only in transformations of LLM requests']],
    ['network', 'source.address == "1.2.3.4"', []],
    ['network', 'request.path', ['line 1, column 1: "request" is not known here, only in HTTP requests']],
    ['resource', 'env.podName', []],
    ['resource', 'source.address', ['line 1, column 1: "source" is not known here, only on connections']],
    ['log', 'flatten(jwt)', []],
    ['request', 'flatten(jwt)', ['line 1, column 1: flatten() is only for fields of logs and traces']],
    ['request', 'request.path.startWith("/")', ['line 1, column 14: unknown method "startWith"; did you mean "startsWith"?']],
    ['request', 'startsWith(request.path, "/")', ['line 1, column 1: unknown function "startsWith"; it is a method: x.startsWith(…)']],
    ['request', 'request.path.startsWith()', ['line 1, column 14: startsWith() takes 1 arguments, not 0']],
    ['request', 'request.path.matches("(")', ['line 1, column 22: the pattern is not a regular expression (RE2): missing closing ): `(`']],
    [
      'request',
      'request.path.matches("(?=a)")',
      ['line 1, column 22: the pattern is not a regular expression (RE2): invalid or unsupported Perl syntax: `(?=`'],
    ],
    ['request', '[1].map(a.b, 1)', ['line 1, column 11: map() takes the name of a variable first']],
    [
      'request',
      'foo(bar) + baz()',
      ['line 1, column 1: unknown function "foo"', 'line 1, column 5: unknown variable "bar"', 'line 1, column 12: unknown function "baz"'],
    ],
    ['request', 'default(nothing, "x") + coalesce(response.code, "x")', []],
    ['request', 'Msg{a: 1}', ['line 1, column 1: message types such as Msg are not supported; write a map']],
    ['request', 'request.', ['line 1, column 9: expected a field name instead of the end']],
    ['request', 'a b', ['line 1, column 3: unexpected "b"']],
    ['request', '"abc', ['line 1, column 1: the string is not closed']],
    ['request', '1 +', ['line 1, column 4: expected an expression instead of the end']],
    ['request', '"\\q"', ['line 1, column 2: unknown escape sequence']],
    ['request', '', ['line 1, column 1: expected an expression instead of the end']],
    ['request', '99999999999999999999', ['line 1, column 1: 99999999999999999999 does not fit into 64 bits']],
    ['request', 'if', ['line 1, column 1: "if" is a reserved word']],
    ['request', 'a ? b', ['line 1, column 6: expected ":" instead of the end']],
    ['request', '#', ['line 1, column 1: unexpected character "#"']],
  ]
  test.each(cases)('in phase %s finds the problems of %s', (phase, source, problems) => {
    expect(problemsOf(source, phase)).toEqual(problems)
  })

  test('rejects expressions that are too long or too deep', () => {
    expect(problemsOf(' '.repeat(16_385), 'request')).toEqual(['line 1, column 1: the expression has 16385 characters, at most 16384 are allowed'])
    for (const deep of ['('.repeat(8000), '['.repeat(8000), '!('.repeat(5000), `1${'+1'.repeat(5000)}`, `jwt${'.a'.repeat(5000)}`, 'true?'.repeat(3000)]) {
      expect(problemsOf(deep, 'request')[0]).toMatch(/nests deeper than 250 levels|expected/)
    }
    expect(problemsOf(Array.from({ length: 1000 }, () => 'true').join(' && '), 'request')).toEqual([])
  })
})

describe('compilePermissive', () => {
  test('returns an expression that always fails, and a warning, for a syntax error', () => {
    const { program, problems } = compilePermissive('request.')
    expect(problems.map(formatDiagnostic)).toEqual(['line 1, column 9: expected a field name instead of the end'])
    expect(program.eval({})).toBeInstanceOf(CelError)
    expect(evalBool(program, {})).toBe(false)
  })

  test('returns an expression that fails only where it needs an unknown name', () => {
    const { program, problems } = compilePermissive('nobody.here || true', environments.request)
    expect(problems).toHaveLength(1)
    expect(evalBool(program, {})).toBe(true)
  })
})

describe('the members that a program reads', () => {
  const cases: readonly (readonly [source: string, reads: readonly string[]])[] = [
    [
      'json(request.body).model == "x" && request.headers["a"] == "b" && has(jwt.sub)',
      ['json()', 'request', 'request.body', 'request.headers', 'jwt', 'jwt.sub'],
    ],
    ['request["body"]', ['request']],
    ['variables().request', ['*']],
    ['[1].exists(request, request.body == 1)', []],
    ['cel.bind(request, 1, request.body) == response.body', ['response', 'response.body']],
    ['.request.body', ['request', 'request.body']],
    ['request.?body', ['request']],
    ['default(request.bodyPrefix, "")', ['request', 'request.bodyPrefix']],
  ]
  test.each(cases)('are listed for %s', (source, reads) => {
    expect([...compilePermissive(source).program.reads].toSorted()).toEqual(reads.toSorted())
  })

  test('include a member that is named, or all members', () => {
    expect(readsMember(good('size(request.body.a) > 1'), 'request.body')).toBe(true)
    expect(readsMember(good('variables()'), 'response.body')).toBe(true)
    expect(readsMember(good('request.bodyPrefix'), 'request.body')).toBe(false)
  })
})

test('the kind of the result is known if the source determines it', () => {
  const kinds = {
    bool: ['a == 1 || b', '!a', 'a in b', 'has(a.b)', 'true ? a < 1 : a.matches("x")'],
    string: ['"a"', 'string(a)'],
    number: ['1', '2.5', 'size(a)'],
    list: ['[a]', 'a.map(x, x)'],
    map: ['{}'],
    dyn: ['a.b', 'a + b', 'a["b"]', 'true ? 1 : "a"', 'a.join()', '1 +'],
  }
  for (const [kind, sources] of Object.entries(kinds)) {
    for (const source of sources) expect([source, compilePermissive(source).program.resultKind]).toEqual([source, kind])
  }
})

describe('the eval functions', () => {
  const context = { jwt: { sub: 'a', list: [1, 'x'], none: null }, request: { startTime: 5 } }

  test('return false or undefined for failures and results of other types', () => {
    for (const source of ['jwt.missing', '1 / 0', 'fail("x")']) {
      const program = good(source)
      expect(evalBool(program, context)).toBe(false)
      expect(evalCondition(program, context)).toBeInstanceOf(CelError)
      expect([evalString, evalBody, evalHost, evalNumber, evalDurationMs, evalTimestampMs].map((evaluate) => evaluate(program, context))).toEqual(
        Array(6).fill(undefined),
      )
    }
    expect(evalBool(good('"true"'), context)).toBe(false)
    expect(evalCondition(good('1'), context)).toBeInstanceOf(CelError)
    expect(evalCondition(good('1 == 2'), context)).toBe(false)
  })

  test('convert results to the type of their use', () => {
    expect(evalString(good('jwt.list'), context)).toBe('[1,"x"]')
    expect(evalString(good('1.5'), context)).toBe('1.5')
    expect(evalString(good('jwt.none'), context)).toBeUndefined()
    expect(evalString(good('duration("90s")'), context)).toBe('90s')
    expect(evalBody(good('b"ab"'), context)).toEqual(new Uint8Array([97, 98]))
    expect(evalBody(good('{"a": jwt.list}'), context)).toBe('{"a":[1,"x"]}')
    expect(evalNumber(good('3u'), context)).toBe(3)
    expect(evalDurationMs(good('duration("1.5s")'), context)).toBe(1500)
    expect(evalDurationMs(good('250'), context)).toBe(250)
    expect(evalTimestampMs(good('timestamp(1)'), context)).toBe(1000)
    const fields = evalHost(good('flatten({"a": {"b": 1}, "c": [2]})', 'log'), context) as Flattened
    expect(fields.expand('x')).toEqual([
      ['x.a', { b: 1 }],
      ['x.c', [2]],
    ])
    const deep = evalHost(good('flattenRecursive({"a": {"b": 1}, "c": [2]})', 'log'), context) as Flattened
    expect(deep.expand('x')).toEqual([
      ['x.a.b', 1],
      ['x.c.0', 2],
    ])
  })
})

describe('a member that a variable never has', () => {
  const problemOf = (source: string, environment = environments.log): string | undefined => compilePermissive(source, environment).problems[0]?.message

  test.each([
    ['request.pth == "/"', '"request" has no member "pth"; did you mean "path"?'],
    ['has(request.pth)', '"request" has no member "pth"; did you mean "path"?'],
    ['request["pth"]', '"request" has no member "pth"; did you mean "path"?'],
    ['request.?pth.orValue("")', '"request" has no member "pth"; did you mean "path"?'],
    ['default(source.adress, "")', '"source" has no member "adress"; did you mean "address"?'],
    ['llm.inputToken', '"llm" has no member "inputToken"; did you mean "inputTokens"?'],
    ['env.HOME', /^"env" has no member "HOME"; it has podName, namespace, gateway$/],
    ['["a"].exists(x, request.nothing == x)', /^"request" has no member "nothing"; it has /],
  ])('is reported in %s', (source, expected) => expect(problemOf(source)).toMatch(expected))

  test.each([
    'request.headers.anything',
    'jwt.anything',
    'jwt["https://example.com/claim"].b',
    'apiKey.metadata.team',
    'extauthz.a',
    'extproc.b.c',
    'metadata.d',
    'mcpGuardrails.e',
    'llm.params.temperature',
    'mcp.tool.arguments.city',
    'json(request.body).pth',
    'request.path.with(request, request.startsWith("/"))',
    '[{"pth": 1}].exists(request, request.pth == 1)',
  ])('is not reported in %s', (source) => expect(problemOf(source)).toBeUndefined())

  test('does not change the value of the expression', () => {
    const { program } = compilePermissive('has(request.pth) || default(request.pth, "none") == "none"', environments.request)
    expect(program.eval({ request: {} })).toBe(true)
  })

  test('is known for every variable whose members are fixed', () => {
    for (const [root, members] of environments.log.members ?? []) {
      const environment = environments.log.variables?.has(root) === true ? environments.log : environments.rollout
      for (const member of members) expect(problemOf(member === '' ? root : `${root}.${member}`, environment)).toBeUndefined()
      expect(problemOf(`${root}.nothing`, environment)).toContain(`"${root}" has no member "nothing"`)
    }
  })
})
