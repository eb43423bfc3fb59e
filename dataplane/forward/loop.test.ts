import { describe, expect, test } from '@jest/globals'
import { HeaderList } from '../http/headers.ts'
import { LOOP_HEADER, LoopMark } from './loop.ts'

describe('a loop mark', () => {
  const secret = Buffer.alloc(32, 1)

  test('is recognized by the gateway that made it, and by replicas with its key', () => {
    const mark = new LoopMark(secret)
    for (const other of [mark, new LoopMark(secret)]) expect(() => other.check(new HeaderList([LOOP_HEADER, mark.value]))).toThrow('request loop detected')
  })

  test.each([
    ['of another gateway', new LoopMark(undefined).value],
    ['without a hash', 'abc'],
    ['with a wrong hash', `${new LoopMark(secret).value.slice(0, -2)}xx`],
    ['that is empty', ''],
  ])('%s is removed', (_, value) => {
    const headers = new HeaderList([LOOP_HEADER, value, 'x-a', '1'])
    new LoopMark(secret).check(headers)
    expect([headers.has(LOOP_HEADER), headers.get('x-a')]).toEqual([false, '1'])
  })

  test('is found behind a forged one', () => {
    const mark = new LoopMark(undefined)
    expect(() => mark.check(new HeaderList([LOOP_HEADER, 'forged', LOOP_HEADER, mark.value]))).toThrow('request loop detected')
  })
})
