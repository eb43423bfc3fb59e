import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { runSync } from '../../../runtime/cooperative.ts'
import { compareTools, similarityOf } from './similarity.ts'
import { ShadowQueue } from './queue.ts'

const similarity = (a: string, b: string): number => runSync(similarityOf(a, b))
const call = (name: string, input: string) => ({ id: 'x', name, arguments: input })
const tools = (a: ReturnType<typeof call>[], b: ReturnType<typeof call>[]) => runSync(compareTools(a, b))

describe('the similarity of texts', () => {
  test('is 1 for texts that differ in space only, and 0 for texts that share no trigram', () => {
    expect([similarity('a  b\nc', ' a b c '), similarity('', ''), similarity('', 'abc'), similarity('abcdef', 'uvwxyz')]).toEqual([1, 1, 0, 0])
  })

  test('is the share of trigrams in common', () => {
    // abc bcd cde and abc bcd cdx
    expect(similarity('abcde', 'abcdx')).toBeCloseTo((2 * 2) / 6)
  })

  test('is symmetric, and from 0 to 1', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (a, b) => {
        const value = similarity(a, b)
        return value >= 0 && value <= 1 && value === similarity(b, a)
      }),
    )
  })

  test('is computed in steps of some milliseconds for long texts', () => {
    const [a, b] = [0, 1].map((seed) => Array.from({ length: 200_000 }, (_, at) => String.fromCharCode(97 + ((at * (7 + seed) + (at >> 3)) % 26))).join(''))
    const work = similarityOf(a ?? '', b ?? '')
    let steps = 0
    while (work.next().done !== true) steps++
    // 65,536 characters of each.
    expect(steps).toBeGreaterThanOrEqual(60)
  })
})

describe('calls of tools', () => {
  test.each([
    ['none', [call('f', '{"a": 1, "b": [1, {"c": null}]}')], [call('f', '{"b":[1,{"c":null}],"a":1}')]],
    ['arguments', [call('f', '{"a": 1}')], [call('f', '{"a": 2}')]],
    ['arguments', [call('f', '{"a": 1}')], [call('f', '{"a": 1')]],
    ['arguments', [call('f', '[1, 2]')], [call('f', '[2, 1]')]],
    ['names', [call('f', '{}')], [call('g', '{}')]],
    ['names', [call('f', '{}')], []],
    ['names', [call('f', '{}'), call('g', '{}')], [call('g', '{}'), call('f', '{}')]],
  ] as const)('differ by %s', (expected, a, b) => {
    expect(tools([...a], [...b])).toBe(expected)
  })

  test('with deeply nested arguments do not exhaust the stack', () => {
    const deep = '['.repeat(50_000) + ']'.repeat(50_000)
    expect(tools([call('f', deep)], [call('f', `${deep} `)])).toBe('arguments')
  })
})

describe('the queue of copies', () => {
  test('runs as many as permitted in order, and rejects what exceeds its bounds', async () => {
    const ends: (() => void)[] = []
    const started: number[] = []
    const queue = new ShadowQueue<{ readonly bytes: number; readonly id: number }>(({ id }) => {
      started.push(id)
      return new Promise((resolve) => ends.push(resolve))
    })
    const accepted = Array.from({ length: 80 }, (_, id) => queue.add('m', 2, { id, bytes: 1 }))
    await new Promise((resolve) => setTimeout(resolve, 0))
    await new Promise((resolve) => setImmediate(resolve))
    expect([accepted.filter(Boolean).length, started]).toEqual([66, [0, 1]])
    expect(queue.add('other', 1, { id: 100, bytes: 17 * 1024 * 1024 })).toBe(false)
    ends.shift()?.()
    await new Promise((resolve) => setImmediate(resolve))
    expect(started).toEqual([0, 1, 2])
  })
})
