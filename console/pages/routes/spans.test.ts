import { expect, test } from '@jest/globals'
import { toSpans } from './spans.ts'

test('a step lasts until the next of its level, an attempt until the next attempt or the response', () => {
  const spans = toSpans([
    { atMs: 0, kind: 'listener', name: 'ns/gw.http' },
    { atMs: 1, kind: 'policy', name: 'authorization' },
    { atMs: 2, kind: 'expression', name: 'a', detail: { result: false } },
    { atMs: 4, kind: 'expression', name: 'b', detail: { result: 'error: no such key' } },
    { atMs: 7, kind: 'upstream', name: '10.0.0.1:80', detail: { attempt: 0, failed: 'connection refused' } },
    { atMs: 8, kind: 'upstream', name: '10.0.0.2:80', detail: { attempt: 1, status: 503 } },
    { atMs: 10, kind: 'expression', name: 'c', detail: { result: 'string of 3' } },
    { atMs: 12, kind: 'answer', name: '503', detail: { by: 'upstream' } },
  ])
  expect(spans.map(({ durationMs, depth, outcome: { tone, text } }) => [durationMs, depth, tone, text])).toEqual([
    [1, 0, 'plain', ''],
    [6, 0, 'good', 'passed'],
    [2, 1, 'plain', 'false'],
    [3, 1, 'bad', 'error: no such key'],
    [1, 0, 'bad', 'failed: connection refused'],
    [4, 0, 'bad', '503'],
    [2, 0, 'plain', 'string of 3'],
    [0, 0, 'bad', 'by the upstream'],
  ])
})

test('a policy that rejected or answered the request says so', () => {
  const spans = toSpans([
    { atMs: 0, kind: 'policy', name: 'authorization', detail: { refused: 'AUTHORIZATION' } },
    { atMs: 0, kind: 'policy', name: 'cors', detail: { answered: 204 } },
  ])
  expect(spans.map(({ outcome }) => outcome)).toEqual([
    { tone: 'bad', text: 'rejected: AUTHORIZATION' },
    { tone: 'warn', text: 'responded 204' },
  ])
})
