import { describe, expect, test } from '@jest/globals'
import { parseHeaders, shellWord, splitUrl } from './draft.ts'

describe('the URL of a draft', () => {
  test.each([
    ['shop.example', 'shop.example', '/'],
    ['https://shop.example/cart?id=1#top', 'shop.example', '/cart?id=1'],
    ['shop.example?x=1', 'shop.example', '/?x=1'],
    ['[::1]:8080/a', '[::1]:8080', '/a'],
    ['/only', '', '/only'],
  ])('%s is split into host and path', (url, host, path) => {
    expect(splitUrl(url)).toEqual({ host, path })
  })
})

describe('the headers of a draft', () => {
  test('are read line by line, with colons in values', () => {
    expect(parseHeaders('x-a: 1\n\n x-b : http://x \nx-c:')).toEqual([
      ['x-a', '1'],
      ['x-b', 'http://x'],
      ['x-c', ''],
    ])
  })

  test('without a colon are rejected with the line', () => {
    expect(() => parseHeaders('x-a: 1\noops')).toThrow('headers, line 2: "oops" has no colon')
  })
})

test('a shell word is quoted if it needs quotes', () => {
  expect([shellWord('http://a/b'), shellWord("it's $x"), shellWord('')]).toEqual(['http://a/b', String.raw`'it'\''s $x'`, "''"])
})
