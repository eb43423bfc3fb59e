import { describe, expect, test } from '@jest/globals'
import { BufferBody, readBody, type BodySink } from './body.ts'

const pieces = ['{"a":', '', '1', '}'].map((text) => Buffer.from(text))

function collect(body: BufferBody, onData = (): void => undefined): { readonly got: string[]; isEnded: boolean } {
  const seen = { got: [] as string[], isEnded: false }
  const sink: BodySink = {
    onData(chunk) {
      seen.got.push(chunk.toString())
      onData()
    },
    onEnd() {
      seen.isEnded = true
    },
    onError(error) {
      throw error
    },
  }
  body.start(sink)
  return seen
}

describe('a body in memory, in several pieces', () => {
  test('is as long as all of them, and has their bytes in order', async () => {
    expect([new BufferBody(pieces).length, new BufferBody(pieces).bytes.toString()]).toEqual([7, '{"a":1}'])
    expect((await readBody(new BufferBody(pieces), 7)).bytes.toString()).toBe('{"a":1}')
  })

  test('waits between them while it is paused', () => {
    const body = new BufferBody(pieces)
    const seen = collect(body, () => body.pause())
    expect(seen).toEqual({ got: ['{"a":'], isEnded: false })
    body.resume()
    expect(seen).toEqual({ got: ['{"a":', '1'], isEnded: false })
    body.resume()
    body.resume()
    expect(seen).toEqual({ got: ['{"a":', '1', '}'], isEnded: true })
  })

  test('that is given up sends no more; again it sends all', () => {
    const body = new BufferBody(pieces)
    const seen = collect(body, () => body.cancel())
    expect(seen).toEqual({ got: ['{"a":'], isEnded: false })
    expect(collect(body.again())).toEqual({ got: ['{"a":', '1', '}'], isEnded: true })
  })

  test('of no piece is empty and ends', () => {
    expect([new BufferBody([]).bytes.length, collect(new BufferBody([]))]).toEqual([0, { got: [], isEnded: true }])
  })
})
