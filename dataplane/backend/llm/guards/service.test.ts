import { expect, test } from '@jest/globals'
import { runSync } from '../../../runtime/cooperative.ts'
import { printInSlices } from './service.ts'

test.each<[string, unknown]>([
  ['an empty list', []],
  [
    'nested lists and objects',
    {
      body: {
        messages: [
          { role: 'user', content: 'a "b"' },
          { role: 'tool', content: '' },
        ],
      },
      n: 1,
      none: null,
    },
  ],
  ['a list of many slices', Array.from({ length: 1000 }, (_, nth) => ({ nth }))],
  ['absent members', { a: undefined, b: 1 }],
])('the body for a guard service with %s is printed as by JSON.stringify', (_, value) => {
  expect(runSync(printInSlices(value))).toBe(JSON.stringify(value))
})

test('a long list for a guard service is printed in slices', () => {
  const work = printInSlices({ messages: Array.from({ length: 10_000 }, () => ({ role: 'user', content: 'x' })) })
  expect(work.next().done).toBe(false)
})
