import { describe, expect, test } from '@jest/globals'
import { effectiveHostnames, intersectHostnames } from './hostnames.ts'

describe('the intersection of hostnames', () => {
  test.each([
    [undefined, undefined, ''],
    ['a.com', undefined, 'a.com'],
    ['*.a.com', undefined, '*.a.com'],
    ['a.com', 'a.com', 'a.com'],
    ['a.com', 'b.com', undefined],
    ['b.a.com', '*.a.com', 'b.a.com'],
    ['a.com', '*.a.com', undefined],
    ['*.a.com', '*.b.a.com', '*.b.a.com'],
    ['*.a.com', '*.a.com', '*.a.com'],
    ['*.a.com', '*.ba.com', undefined],
    ['*.a.com', 'ba.com', undefined],
    ['*.a.com', 'c.b.a.com', 'c.b.a.com'],
    ['*.b.a.com', '*.c.a.com', undefined],
    ['*.com', '*.a.com', '*.a.com'],
  ])('of %s and %s is %s', (a, b, expected) => {
    expect(intersectHostnames(a, b)).toBe(expected)
    expect(intersectHostnames(b, a)).toBe(expected)
  })

  test.each([
    [undefined, '*.a.com', ['*.a.com']],
    [[], undefined, ['']],
    [['B.a.com', 'c.com', '*.a.com'], '*.a.com', ['b.a.com', '*.a.com']],
    [['c.com'], '*.a.com', []],
  ])('of the route hostnames %j with the listener hostname %s is %j', (route, listener, expected) => {
    expect(effectiveHostnames(route, listener)).toEqual(expected)
  })
})
