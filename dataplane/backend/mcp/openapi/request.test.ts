import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { OpenApiParameter, OpenApiTool } from '#gen/config/types.ts'
import { HeaderList } from '../../../http/headers.ts'
import { runSync } from '../../../runtime/cooperative.ts'
import { ArgumentError, buildRequest } from './request.ts'

type More = Partial<OpenApiParameter>
const parameter = (place: OpenApiParameter['in'], more: More = {}): OpenApiParameter => {
  const style = more.style ?? (place === 'query' ? 'form' : 'simple')
  return { argument: 'v', name: 'v', in: place, explode: style === 'form', ...more, style }
}
const tool = (path: string, parameters: OpenApiParameter[], more: Partial<OpenApiTool> = {}): OpenApiTool => ({
  name: 't',
  definition: '{}',
  method: 'GET',
  path,
  parameters,
  ...more,
})
const build = (operation: OpenApiTool, args: object, received = new HeaderList()) =>
  runSync(buildRequest(operation, '/base', args as Record<string, unknown>, received))
const pathFor = (value: unknown, more: More = {}) => build(tool('/x/{v}/y', [parameter('path', more)]), { v: value }).path
const queryFor = (value: unknown, more: More = {}) => build(tool('/x', [parameter('query', more)]), { v: value }).path
const headerFor = (value: unknown, more: More = {}) => build(tool('/x', [parameter('header', more)]), { v: value }).headers.get('v')
const array = ['blue', 'black', 'b&w']
const object = { R: 100, G: 'a b' }

/** The examples of OpenAPI 3.1, style examples. */
describe('serialization of parameters', () => {
  test.each<[More, unknown, string]>([
    [{}, 'a/b?c#d%', 'a%2Fb%3Fc%23d%25'],
    [{}, 5, '5'],
    [{}, true, 'true'],
    [{}, array, 'blue,black,b%26w'],
    [{}, object, 'R,100,G,a%20b'],
    [{ explode: true }, object, 'R=100,G=a%20b'],
    [{ style: 'label' }, 'blue', '.blue'],
    [{ style: 'label', explode: true }, array, '.blue.black.b%26w'],
    [{ style: 'label', explode: true }, object, '.R=100.G=a%20b'],
    [{ style: 'matrix' }, 'blue', ';v=blue'],
    [{ style: 'matrix' }, array, ';v=blue,black,b%26w'],
    [{ style: 'matrix', explode: true }, array, ';v=blue;v=black;v=b%26w'],
    [{ style: 'matrix', explode: true }, object, ';R=100;G=a%20b'],
    [{ isJson: true }, { a: 1 }, '%7B%22a%22%3A1%7D'],
  ])('in paths: %j writes %j as %s', (more, value, written) => expect(pathFor(value, more)).toBe(`/base/x/${written}/y`))

  test.each<[More, unknown, string]>([
    [{}, 'a&b=c+d', '?v=a%26b%3Dc%2Bd'],
    [{}, null, '?v='],
    [{}, array, '?v=blue&v=black&v=b%26w'],
    [{ explode: false }, array, '?v=blue,black,b%26w'],
    [{}, object, '?R=100&G=a%20b'],
    [{ explode: false }, object, '?v=R,100,G,a%20b'],
    [{ style: 'spaceDelimited' }, array, '?v=blue%20black%20b%26w'],
    [{ style: 'pipeDelimited' }, array, '?v=blue%7Cblack%7Cb%26w'],
    [{ style: 'deepObject' }, { a: 1, b: { c: ['x'] } }, '?v%5Ba%5D=1&v%5Bb%5D%5Bc%5D%5B0%5D=x'],
    [{ isJson: true }, { a: [1] }, '?v=%7B%22a%22%3A%5B1%5D%7D'],
    [{ allowReserved: true }, 'a/b?c:d&e=f#g+h[i]', '?v=a/b?c:d%26e%3Df%23g%2Bh%5Bi%5D'],
    [{ name: 'f[x]' }, 'y', '?f%5Bx%5D=y'],
    [{}, [], ''],
    [{}, [{ a: 1 }], '?v=%7B%22a%22%3A1%7D'],
  ])('in queries: %j writes %j as %s', (more, value, written) => expect(queryFor(value, more)).toBe(`/base/x${written}`))

  test.each<[More, unknown, string]>([
    [{}, 'a b', 'a b'],
    [{}, array, 'blue,black,b&w'],
    [{}, object, 'R,100,G,a b'],
    [{ explode: true }, object, 'R=100,G=a b'],
    [{ isJson: true }, { a: 1 }, '{"a":1}'],
  ])('in headers: %j writes %j as %s', (more, value, written) => expect(headerFor(value, more)).toBe(written))

  test('names of headers are in lower case, as HTTP/2 requires', () => {
    const received = new HeaderList(['x-trace', 'of the client'])
    const { headers } = build(tool('/x', [parameter('header', { name: 'X-Trace' })]), { v: 'a' }, received)
    expect([...headers].filter(([name]) => name.toLowerCase() === 'x-trace')).toEqual([['x-trace', 'a']])
  })

  test('leaves out arguments that are not given', () => {
    expect(build(tool('/x', [parameter('query'), parameter('header', { argument: 'w', name: 'w' })]), {}).path).toBe('/base/x')
  })
})

describe('arguments cannot escape their place', () => {
  test.each(['..', '.', '%2e%2e/', '../admin', '..\\admin', 'a/../../b', 'a\\..\\b', 'x/..'])(
    'a path value %j that makes a dot segment is rejected',
    (value) => {
      const isHarmless = value.startsWith('%')
      if (isHarmless) expect(pathFor(value)).toBe('/base/x/%252e%252e%2F/y')
      else expect(() => pathFor(value)).toThrow('segment . or ..')
    },
  )

  test('values that make a dot segment together are rejected', () => {
    const both = [parameter('path', { argument: 'a', name: 'a' }), parameter('path', { argument: 'b', name: 'b' })]
    expect(() => build(tool('/x/{a}{b}/y', both), { a: '.', b: '.' })).toThrow('segment . or ..')
    expect(() => build(tool('/x/{a}{b}', both), { a: 'y/', b: '..' })).toThrow('segment . or ..')
  })

  test.each([
    ['an empty path value', '', 'arguments.v must not be empty'],
    ['a control character in a path', 'a\u0000b', 'control characters'],
    ['a line break in a path', 'a\r\nb', 'control characters'],
  ])('%s is rejected', (_, value, message) => expect(() => pathFor(value)).toThrow(message))

  test.each(['a\r\nx-admin: 1', 'a\nb', 'a\u0000', 'é', ' a', 'a ', '\u2028', ['a', 'b\r\nc'], { 'x\r\ny': 1 }])('a header value %j is rejected', (value) => {
    expect(() => headerFor(value)).toThrow(ArgumentError)
  })

  test('values are no templates', () => {
    const both = [parameter('path', { argument: 'a', name: 'a' }), parameter('path', { argument: 'b', name: 'b' })]
    expect(build(tool('/{a}/{b}', both), { a: '{b}', b: '$&' }).path).toBe('/base/%7Bb%7D/%24%26')
  })

  test('long URLs and headers are rejected', () => {
    expect(() => queryFor('x'.repeat(17_000))).toThrow('at most 16384 are allowed')
    expect(() => headerFor('x'.repeat(9000))).toThrow('at most 8192 are allowed in a header')
  })

  test('any text in a path or query stays in its segment or field', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        let path: string
        try {
          path = pathFor(text)
        } catch (error) {
          expect(error).toBeInstanceOf(ArgumentError)
          return
        }
        const url = new URL(path, 'http://host')
        expect(url.pathname.split('/')).toHaveLength(5)
        expect(url.pathname).toMatch(/^\/base\/x\/[^/]+\/y$/)
        expect([url.search, url.hash]).toEqual(['', ''])
      }),
    )
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.boolean(), (text, allowReserved) => {
        const url = new URL(queryFor(text, { allowReserved }), 'http://host')
        expect([...url.searchParams]).toEqual([['v', text.toWellFormed()]])
        expect(url.hash).toBe('')
      }),
    )
  })
})

describe('bodies and headers', () => {
  const post = (body: NonNullable<OpenApiTool['body']>, value: unknown, received?: HeaderList) =>
    build(tool('/x', [], { method: 'POST', body }), { body: value }, received)

  test('JSON keeps its numbers', () => {
    const { body, headers } = post({ argument: 'body', mediaType: 'application/json', kind: 'json' }, { a: [1, 'x'] })
    expect([body?.toString(), headers.get('content-type')]).toEqual(['{"a":[1,"x"]}', 'application/json'])
  })

  test('forms are encoded by field', () => {
    const encoding = [
      { name: 'meta', style: 'deepObject' as const, explode: true },
      { name: 'ids', style: 'form' as const, explode: false },
    ]
    const value = { name: 'a&b=c', meta: { k: 'v w' }, ids: [1, 2], more: [1, 2], nested: { x: 1 } }
    const { body, headers } = post({ argument: 'body', mediaType: 'application/x-www-form-urlencoded', kind: 'form', encoding }, value)
    expect(body?.toString()).toBe('name=a%26b%3Dc&meta%5Bk%5D=v%20w&ids=1,2&more=1&more=2&nested=%7B%22x%22%3A1%7D')
    expect(headers.get('content-type')).toBe('application/x-www-form-urlencoded')
  })

  test('large JSON is written in steps', () => {
    const body = { argument: 'body', mediaType: 'application/json', kind: 'json' } as const
    const value = Array.from({ length: 50_000 }, (_, index) => ({ index }))
    const work = buildRequest(tool('/x', [], { method: 'POST', body }), '', { body: value }, new HeaderList())
    let steps = 0
    let step = work.next()
    for (; step.done !== true; step = work.next()) steps++
    expect(steps).toBeGreaterThan(5)
    expect(step.value.body?.toString()).toBe(JSON.stringify(value))
  })

  test('text is sent as it is', () => {
    expect(post({ argument: 'body', mediaType: 'text/plain', kind: 'text' }, 'a\nb').body?.toString()).toBe('a\nb')
  })

  test('headers of the client pass, without those of MCP', () => {
    const received = new HeaderList([
      'x-request-id',
      '1',
      'mcp-session-id',
      's',
      'mcp-protocol-version',
      '2025-11-25',
      'mcp-method',
      'tools/call',
      'content-type',
      'a/b',
      'accept',
      'x',
    ])
    const { headers } = post({ argument: 'body', mediaType: 'application/json', kind: 'json' }, {}, received)
    expect([...headers]).toEqual([
      ['x-request-id', '1'],
      ['accept', 'application/json, */*;q=0.5'],
      ['accept-encoding', 'identity'],
      ['content-type', 'application/json'],
    ])
  })
})
