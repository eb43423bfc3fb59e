import { describe, expect, test } from '@jest/globals'
import type { OpenApiTool } from '#gen/config/types.ts'
import { nextPage } from './next-page.ts'

const query = (name: string, argument = name) => ({ argument, name, in: 'query', style: 'form', explode: true }) as const
const operation: OpenApiTool = {
  name: 't',
  definition: '{}',
  method: 'GET',
  path: '/x',
  parameters: [query('page'), query('per_page'), query('page[after]', 'page_after'), { ...query('id'), in: 'path', style: 'simple' }],
}
const schema = { type: 'object', properties: { page: { type: 'integer' }, per_page: { type: ['integer', 'null'] }, page_after: { type: 'string' } } }
const next = (link: string | undefined, sent = '/x?per_page=5') => nextPage(operation, link, sent, schema)

describe('nextPage', () => {
  test.each([
    ['<https://api.example.com/x?page=2&per_page=5>; rel="next", <https://api.example.com/x?page=9>; rel="last"', { page: 2 }],
    ['<https://h/x?page=1>; rel="prev", </x?page=3&per_page=10>; title="a, b"; rel="next"', { page: 3, per_page: 10 }],
    ['<?page%5Bafter%5D=12>; rel=next', { page_after: '12' }],
    ['<?page=x>; rel="first next"', { page: 'x' }],
  ])('of %s is %j', (link, args) => expect(next(link)).toEqual(args))

  test.each([
    undefined,
    '',
    '<https://h/x?page=2>; rel="prev"',
    '<https://h/x?other=2>; rel="next"',
    '<https://h/x?per_page=5>; rel="next"',
    '<http://[>; rel="next"',
    '<?page=2; rel="next"',
    '<?id=7>; rel="next"',
  ])('does not exist for %j', (link) => expect(next(link)).toBeUndefined())

  test('takes linear time for hostile headers', () => {
    expect(next(`<${'<'.repeat(8000)}`)).toBeUndefined()
    expect(next(`<?page=2>;${' rel'.repeat(1900)}`)).toBeUndefined()
    expect(next(`<?page=2>; rel="${'x '.repeat(4000)}`)).toBeUndefined()
  })
})
