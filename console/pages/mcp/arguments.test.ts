import { describe, expect, test } from '@jest/globals'
import { readArguments } from './arguments.ts'

const schema = {
  properties: {
    count: { type: 'integer' },
    text: { type: 'string' },
    isExact: { type: 'boolean' },
    level: { enum: [1, 'low'] },
    list: { type: 'array' },
    any: {},
  },
}

describe('the arguments of a tool', () => {
  test('have the types of the schema', () => {
    const values = { count: '3', text: '12', isExact: 'false', level: '1', list: '[1]', any: 'free text' }
    expect(readArguments(schema, values)).toEqual({ count: 3, text: '12', isExact: false, level: 1, list: [1], any: 'free text' })
  })

  test('contain no empty fields', () => {
    expect(readArguments(schema, { count: '', text: '' })).toEqual({})
  })

  test.each([
    ['count', 'three', 'count: is not a number'],
    ['list', '[1', 'list: is not valid JSON'],
  ])('reject a wrong value of %s by name', (name, text, message) => {
    expect(() => readArguments(schema, { [name]: text })).toThrow(message)
  })
})
