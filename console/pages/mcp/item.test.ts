import { describe, expect, test } from '@jest/globals'
import { readItems } from './item.ts'

describe('the items of an MCP server', () => {
  test('keep their names, texts and schemas', () => {
    const schema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }
    const [item] = readItems([{ name: 'search', description: '<script>', inputSchema: schema, arguments: [{ name: 'a', required: true }] }])
    expect(item).toEqual({
      name: 'search',
      description: '<script>',
      inputSchema: { properties: schema.properties, required: ['text'] },
      arguments: [{ name: 'a', required: true }],
    })
  })

  test('lose members of wrong types, which a hostile server may send', () => {
    const hostile = [null, 'text', [], { name: {}, uri: 1, description: [], inputSchema: { properties: { x: null, y: 'z' } }, arguments: [null, { name: 3 }] }]
    expect(readItems(hostile)).toEqual([{ inputSchema: { properties: {} }, arguments: [{ name: '', required: false }] }])
    expect(readItems({ length: 3 })).toEqual([])
    expect(readItems([{ inputSchema: { properties: 'abc' } }])).toEqual([{ inputSchema: {} }])
  })
})
