import { describe, expect, test } from '@jest/globals'
import { definitions } from '#api/v1alpha1/definitions.ts'
import { isBroken } from './cel-rules.ts'

describe('the CEL rules of our schemas', () => {
  test('a rule that cannot be evaluated is broken', () => {
    expect(isBroken({ rule: 'self.a > 1', message: '' }, {})).toBe(true)
    expect(isBroken({ rule: 'self.a > 1', message: '' }, { a: 2 })).toBe(false)
  })

  test('every rule of our schemas compiles', () => {
    const rulesIn = (node: unknown): string[] =>
      typeof node !== 'object' || node === null
        ? []
        : Object.entries(node).flatMap(([name, child]) =>
            name === 'x-kubernetes-validations' ? (child as { rule: string }[]).map(({ rule }) => rule) : rulesIn(child),
          )
    const all = rulesIn(definitions)
    expect(all.length).toBeGreaterThan(30)
    for (const rule of all) expect(() => isBroken({ rule, message: '' }, {})).not.toThrow()
  })
})
