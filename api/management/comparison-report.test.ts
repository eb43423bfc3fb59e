import { describe, expect, test } from '@jest/globals'
import type { Comparison } from './comparison.ts'
import { reportPairs, shareOf, worstOf } from './comparison-report.ts'

const side = (more: object = {}) => ({
  target: 'ns/a m',
  model: 'm',
  durationMs: 100,
  firstTokenMs: null,
  inputTokens: 10,
  outputTokens: 20,
  cost: 0.01,
  stop: 'end',
  json: null,
  ...more,
})
const comparison = (more: Partial<Comparison> = {}): Comparison => ({
  timeMs: 0,
  backend: 'ns/models',
  model: 'assistant',
  requestId: null,
  original: side(),
  copy: side({ target: 'ns/b n' }),
  error: null,
  similarity: 1,
  tools: null,
  sameMembers: null,
  verdict: null,
  judgeCost: null,
  texts: null,
  ...more,
})

describe('the report of comparisons', () => {
  test('has the ratio of pairs with an interval that contains the true one', () => {
    const pairs = Array.from({ length: 200 }, (_, index) =>
      comparison({ copy: side({ target: 'ns/b n', cost: 0.01 * 0.5 * Math.exp(0.3 * Math.sin(index * 2.4)) }) }),
    )
    const { cost, duration, firstToken } = reportPairs(pairs)[0]?.ratios ?? {}
    expect(cost?.value).toBeCloseTo(0.5, 1)
    expect([(cost?.low ?? 1) < 0.5, (cost?.high ?? 0) > 0.5, duration?.value, firstToken]).toEqual([true, true, 1, null])
    expect(reportPairs(pairs.slice(0, 19))[0]?.ratios.cost).toBeNull()
  })

  test('counts differences only where they are possible, and separates pairs', () => {
    const reports = reportPairs([
      comparison({ tools: 'none' }),
      comparison({ tools: 'arguments', verdict: 'Copy', judgeCost: 0.5 }),
      comparison({ tools: 'names', verdict: 'Original', judgeCost: 0.25, copy: side({ target: 'ns/b n', stop: 'maxTokens' }) }),
      comparison({ error: 'Timeout', copy: side({ target: 'ns/b n', durationMs: 60_000 }) }),
      comparison({ copy: side({ target: 'ns/c o' }) }),
    ])
    const [first, second] = reports
    expect([first?.comparisons, first?.errors.count, first?.sameTools.of, first?.sameTools.count, first?.sameToolNames.count]).toEqual([4, 1, 3, 1, 2])
    expect([first?.sameStop.count, first?.copyWins.value, first?.judgeCost, first?.copies.durationMs?.p95, second?.copy]).toEqual([2, 0.5, 0.75, 100, 'ns/c o'])
  })

  test('lists failures, calls of tools and JSON before texts', () => {
    const worst = worstOf(
      [
        comparison({ requestId: 'text', similarity: 0 }),
        comparison({ requestId: 'same' }),
        comparison({ requestId: 'tools', tools: 'names' }),
        comparison({ requestId: 'failed', error: '500' }),
        comparison({ requestId: 'json', original: side({ json: true }), copy: side({ json: false }) }),
      ],
      4,
    )
    expect(worst.map(({ requestId }) => requestId)).toEqual(['failed', 'tools', 'json', 'text'])
  })

  test('gives shares of 0 and 1 an interval, too', () => {
    expect(shareOf(0, 100)).toMatchObject({ value: 0, low: 0 })
    expect(shareOf(0, 100).high).toBeCloseTo(0.037, 3)
    expect(shareOf(100, 100).low).toBeCloseTo(0.963, 3)
    expect(shareOf(0, 0)).toEqual({ count: 0, of: 0, value: 0, low: 0, high: 1 })
  })
})
