import { expect, test } from '@jest/globals'
import { toLines } from './lines.ts'

test('a value is written as indented lines', () => {
  expect(toLines([{ action: 'Deny', policy: { matchExpressions: ['"x" in request.headers', 'true'] }, none: [] }, 3])).toBe(
    ['- action: Deny', '  policy:', '    matchExpressions:', String.raw`      - "\"x\" in request.headers"`, '      - "true"', '  none: []', '- 3'].join('\n'),
  )
})

test('a long value is cut', () => {
  const text = toLines(Array.from({ length: 500 }, (_, index) => index))
  expect(text.split('\n').slice(-2)).toEqual(['- 59', '… 440 more lines'])
})
