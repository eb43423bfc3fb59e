import { describe, expect, test } from '@jest/globals'
import { parseJson } from '../message/json.ts'
import { runSync } from '../../../runtime/cooperative.ts'
import { mergeUnchanged } from './merge.ts'

/** What others receive after a hook changed a value, as JSON. A hook reads and writes numbers as doubles. */
function afterHook(text: string, change: (value: never) => unknown): string {
  const value = JSON.parse(text) as never
  return JSON.stringify(runSync(mergeUnchanged(parseJson(text), JSON.parse(JSON.stringify(change(value) ?? value)))))
}

describe('a value after a hook', () => {
  test('is the same object if nothing changed', () => {
    const before = parseJson('{"a":[1.0,{"b":12345678901234567890}],"c":null}')
    expect(runSync(mergeUnchanged(before, JSON.parse('{"c":null,"a":[1,{"b":12345678901234567890}]}')))).toBe(before)
  })

  test.each<[string, (value: never) => unknown, string]>([
    ['{"id":12345678901234567890,"n":1.0}', (value: Record<string, unknown>) => void (value['added'] = 2), '{"id":12345678901234567890,"n":1.0,"added":2}'],
    ['{"id":12345678901234567890}', () => ({ id: 5 }), '{"id":5}'],
    ['[1.0,2.0,[3.0]]', (value: unknown[]) => value.slice(0, 2), '[1.0,2.0]'],
    ['[1.0]', (value: unknown[]) => [...value, 4], '[1.0,4]'],
    ['{"a":1.0}', () => [1], '[1]'],
    ['{"a":1.0}', () => 'text', '"text"'],
    ['{"a":{"b":1e2}}', (value: { a: object }) => ({ ...value, c: value.a }), '{"a":{"b":1e2},"c":{"b":100}}'],
  ])('of %s has exact numbers wherever it is unchanged', (text, change, expected) => {
    expect(afterHook(text, change)).toBe(expected)
  })

  test('has members with the names of prototypes as members only', () => {
    const merged = runSync(mergeUnchanged({ a: 1 }, JSON.parse('{"__proto__":{"polluted":1},"constructor":2,"toString":3}'))) as Record<string, unknown>
    expect([JSON.stringify(merged), merged['polluted']]).toEqual(['{"__proto__":{"polluted":1},"constructor":2,"toString":3}', undefined])
  })
})
