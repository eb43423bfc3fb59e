import { describe, expect, test } from '@jest/globals'
import { MessageOutline } from './outline.ts'

describe('MessageOutline', () => {
  test.each<[string, string | undefined, boolean]>([
    ['{"jsonrpc":"2.0","id":1,"result":{"id":2,"method":"x"}}', '1', false],
    ['{"result":{"a":"}\\",\\"id\\":7","b":[{"id":3}]},"jsonrpc":"2.0","id" : "a\\"b" }', '"a\\"b"', false],
    ['{"jsonrpc":"2.0","method":"notifications/x","params":{"id":1}}', undefined, true],
    ['{"id":-1.5e3,"m\\u0065thod":"x"}', '-1.5e3', true],
    ['{"error":{},"id":null}', 'null', false],
    ['{"method1":1,"x":"method"}', undefined, false],
    ['no JSON "id":1', undefined, false],
  ])('reads the id and the kind of %s', (text, id, hasMethod) => {
    for (const size of [1, 2, 3, 7, text.length]) {
      const outline = new MessageOutline()
      for (let at = 0; at < text.length; at += size) outline.push(text.slice(at, at + size))
      expect([outline.id, outline.hasMethod]).toEqual([id, hasMethod])
    }
  })

  test('keeps no id of unlimited length', () => {
    const outline = new MessageOutline()
    outline.push('{"id":"')
    for (let count = 0; count < 100; count++) outline.push('x'.repeat(1000))
    outline.push('"}')
    expect(outline.id).toBeUndefined()
  })
})
