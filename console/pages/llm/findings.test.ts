import { describe, expect, test } from '@jest/globals'
import { cutAtHits, listFindings, toOriginal } from './findings.ts'

const step = (name: string, detail?: Record<string, string | boolean>) => ({ atMs: 0, kind: 'policy' as const, name, ...(detail && { detail }) })
const hit = (start: number, end: number, label = 'SSN') => ({ label, start, end, text: 1 })

test('listFindings reads what each guard did, and where', () => {
  const steps = [
    step('authorization'),
    step('prompt guard, Request: regex Ssn, a: b', { masked: true, found: 'SSN at 3-14 of text 2, EMAIL_ADDRESS at 20-29 of text 2' }),
    step('prompt guard, Request: webhook', { refused: 'by the guard' }),
    step('prompt guard, Response: moderationApi'),
  ]
  expect(listFindings(steps)).toEqual([
    {
      phase: 'Request',
      guard: 'regex Ssn, a: b',
      decision: 'masked',
      hits: [
        { label: 'SSN', start: 3, end: 14, text: 2 },
        { label: 'EMAIL_ADDRESS', start: 20, end: 29, text: 2 },
      ],
    },
    { phase: 'Request', guard: 'webhook', decision: 'rejected', hits: [] },
    { phase: 'Response', guard: 'moderationApi', decision: 'passed', hits: [] },
  ])
})

test('toOriginal undoes the masks of the guards before', () => {
  // 'a 123-45-6789 b x@y.example c': <SSN> is shorter than the number, <EMAIL_ADDRESS> longer than the address.
  const mask = (...hits: ReturnType<typeof hit>[]) => ({ phase: 'Request', guard: 'g', decision: 'masked' as const, hits })
  const found = toOriginal([mask(hit(2, 13)), mask(hit(10, 21, 'EMAIL_ADDRESS')), { ...mask(hit(0, 1), hit(8, 9), hit(26, 27)), decision: 'passed' }])
  expect(found.map(({ start, end }) => [start, end])).toEqual([
    [2, 13],
    [16, 27],
    [0, 1],
    [14, 15],
    [28, 29],
  ])
})

describe('cutAtHits', () => {
  test.each([
    ['without hits', [], [['abcdef', undefined]]],
    [
      'with hits in any order',
      [hit(4, 6), hit(0, 2, 'X')],
      [
        ['ab', 'X'],
        ['cd', undefined],
        ['ef', 'SSN'],
      ],
    ],
    [
      'with hits that overlap',
      [hit(1, 4), hit(2, 6)],
      [
        ['a', undefined],
        ['bcd', 'SSN'],
        ['ef', undefined],
      ],
    ],
    ['with a hit beyond its end', [hit(2, 9)], [['abcdef', undefined]]],
  ])('cuts a text %s', (_, hits, expected) => expect(cutAtHits('abcdef', hits).map(({ text, label }) => [text, label])).toEqual(expected))

  test('keeps an empty text', () => expect(cutAtHits('', [])).toEqual([{ text: '', label: undefined }]))
})
