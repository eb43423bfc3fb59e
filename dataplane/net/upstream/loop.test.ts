import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { HeaderList } from '../../http/headers.ts'
import type { LoopTrail } from '../../http/message.ts'
import { LOOP_HEADER, LoopMarks, returnsNever, returnsOnce } from './loop.ts'

/** The value of the field for a request with this trail. */
const markOf = (marks: LoopMarks, trail?: LoopTrail): string => marks.line(trail).slice(LOOP_HEADER.length + 2, -2)

/** Sends a request through gateways one after another, and counts those that accept it. */
function pass(path: Iterable<LoopMarks>, first?: (trail: LoopTrail | undefined) => LoopTrail): { accepted: number; isRejected: boolean } {
  let headers = new HeaderList()
  let accepted = 0
  for (const marks of path) {
    const request: { headers: HeaderList; loop?: LoopTrail | undefined } = { headers }
    try {
      marks.receive(request)
    } catch {
      return { accepted, isRejected: true }
    }
    const trail = accepted === 0 && first !== undefined ? first(request.loop) : request.loop
    accepted++
    headers = new HeaderList([LOOP_HEADER, markOf(marks, trail)])
  }
  return { accepted, isRejected: false }
}

const repeat = <T>(item: T, count: number): T[] => Array.from({ length: count }, () => item)

describe('a loop mark', () => {
  const secret = Buffer.alloc(32, 1)

  test('stops a request at its fourth return, to the same gateway or to replicas with its key', () => {
    for (const other of [new LoopMarks(secret), new LoopMarks(Buffer.alloc(32, 1))]) {
      const own = new LoopMarks(secret)
      expect(pass([own, other, own, other, own, other])).toEqual({ accepted: 4, isRejected: true })
    }
  })

  test('stops a copy for a mirror, and a call for no request, at the second return, and a request to a destination that the client chose at the first', () => {
    const own = repeat(new LoopMarks(secret), 6)
    expect(pass(own, returnsOnce)).toEqual({ accepted: 2, isRejected: true })
    expect(pass(own, returnsNever)).toEqual({ accepted: 1, isRejected: true })
  })

  test('lets a request through nine gateways in series, and no more', () => {
    const series = Array.from({ length: 12 }, () => new LoopMarks(undefined))
    expect(pass(series)).toEqual({ accepted: 9, isRejected: true })
    expect(pass(series.slice(0, 9)).isRejected).toBe(false)
  })

  test('stops each path through up to three gateways that repeats, after a bounded number of passes', () => {
    const gateways = Array.from({ length: 3 }, () => new LoopMarks(undefined))
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 5 }), (cycle) => {
        const path = repeat(cycle, 20).flatMap((one) => one.flatMap((at) => gateways[at] ?? []))
        const { accepted, isRejected } = pass(path)
        expect(isRejected).toBe(true)
        expect(accepted).toBeLessThanOrEqual(12)
      }),
    )
  })

  test.each([
    ['text without a hash', 'abc'],
    ['an empty value', ''],
    ['a list', 'a, b,c'],
  ])('%s is removed', (_, value) => {
    const request = { headers: new HeaderList([LOOP_HEADER, value, 'x-a', '1']), loop: undefined }
    new LoopMarks(secret).receive(request)
    expect([request.headers.has(LOOP_HEADER), request.headers.get('x-a'), request.loop]).toEqual([false, '1', undefined])
  })

  test('of another form, or forged, does not hide the own one', () => {
    const marks = new LoopMarks(undefined)
    const last = markOf(marks, returnsNever())
    const forged = markOf(new LoopMarks(undefined))
    for (const value of [`forged, ${last}`, `${forged},${last}`, `${'x,'.repeat(1000)}${last}`])
      expect(() => marks.receive({ headers: new HeaderList([LOOP_HEADER, 'a', LOOP_HEADER, value]) })).toThrow('request loop detected')
  })

  test('does not tell how often a request passed: a changed hash is a mark of another gateway', () => {
    const marks = new LoopMarks(secret)
    const [nonce, hash = ''] = markOf(marks, returnsNever()).split('.')
    const request: { headers: HeaderList; loop?: LoopTrail | undefined } = {
      headers: new HeaderList([LOOP_HEADER, `${nonce}.${hash.startsWith('A') ? 'B' : 'A'}${hash.slice(1)}`]),
    }
    marks.receive(request)
    expect(request.loop?.passes).toBe(0)
  })

  test('is the same text in HTTP/2', () => {
    const marks = new LoopMarks(secret)
    for (const trail of [undefined, returnsOnce(), { passes: 0, others: markOf(new LoopMarks(undefined)) }])
      expect(marks.literal(trail)).toContain(markOf(marks, trail))
  })
})
