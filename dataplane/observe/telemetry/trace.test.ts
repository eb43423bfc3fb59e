import { describe, expect, test } from '@jest/globals'
import { testExchange } from '../../testing/exchange.ts'
import { formatTraceparent, randomId, readTraceparent, startTrace, traceparentOf } from './trace.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

describe('traceparent', () => {
  test.each<[string, string, object | undefined]>([
    ['a sampled trace', `00-${TRACE}-${SPAN}-01`, { traceId: TRACE, spanId: SPAN, flags: 1 }],
    ['an unsampled trace', `00-${TRACE}-${SPAN}-00`, { traceId: TRACE, spanId: SPAN, flags: 0 }],
    ['unknown flags', `00-${TRACE}-${SPAN}-03`, { flags: 3 }],
    ['a later version with more fields', `01-${TRACE}-${SPAN}-01-more`, { traceId: TRACE }],
    ['version 00 with more fields', `00-${TRACE}-${SPAN}-01-more`, undefined],
    ['version ff', `ff-${TRACE}-${SPAN}-01`, undefined],
    ['upper-case digits', `00-${TRACE.toUpperCase()}-${SPAN}-01`, undefined],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`, undefined],
    ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`, undefined],
    ['a truncated header', `00-${TRACE}-${SPAN}`, undefined],
    ['empty', '', undefined],
  ])('%s', (_, header, expected) => {
    const context = readTraceparent(testExchange({}, { traceparent: header }))
    if (expected === undefined) expect(context).toBeUndefined()
    else expect(context).toMatchObject(expected)
  })

  test('is ignored if it is repeated', () => {
    const exchange = testExchange({}, { traceparent: `00-${TRACE}-${SPAN}-01` })
    exchange.request.headers.append('traceparent', `00-${TRACE}-${SPAN}-01`)
    expect(readTraceparent(exchange)).toBeUndefined()
  })
})

test('a new trace is sampled, and a trace of the client keeps its id and flags and gets a new span', () => {
  const fresh = testExchange()
  const own = startTrace(fresh, undefined)
  expect([own.isRecorded, own.parentId, fresh.request.headers.get('traceparent')]).toEqual([true, undefined, formatTraceparent(own)])
  expect(formatTraceparent(own)).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)

  const joined = testExchange({}, { traceparent: `00-${TRACE}-${SPAN}-00` })
  const trace = startTrace(joined, readTraceparent(joined))
  expect([trace.traceId, trace.parentId, trace.isRecorded]).toEqual([TRACE, SPAN, false])
  expect(trace.spanId).not.toBe(SPAN)
  expect([joined.request.headers.get('traceparent'), traceparentOf(joined)]).toEqual([formatTraceparent(trace), `00-${TRACE}-${trace.spanId}-00`])
})

test('random span ids are unique', () => expect(new Set(Array.from({ length: 2000 }, () => randomId(8))).size).toBe(2000))
