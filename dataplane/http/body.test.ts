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

describe('a BufferBody of several pieces', () => {
  test('has the total length and the bytes in order', async () => {
    expect([new BufferBody(pieces).length, new BufferBody(pieces).bytes.toString()]).toEqual([7, '{"a":1}'])
    expect((await readBody(new BufferBody(pieces), 7)).bytes.toString()).toBe('{"a":1}')
  })

  test('delivers nothing while it is paused', () => {
    const body = new BufferBody(pieces)
    const seen = collect(body, () => body.pause())
    expect(seen).toEqual({ got: ['{"a":'], isEnded: false })
    body.resume()
    expect(seen).toEqual({ got: ['{"a":', '1'], isEnded: false })
    body.resume()
    body.resume()
    expect(seen).toEqual({ got: ['{"a":', '1', '}'], isEnded: true })
  })

  test('delivers nothing after cancel, while its copy delivers everything', () => {
    const body = new BufferBody(pieces)
    const seen = collect(body, () => body.cancel())
    expect(seen).toEqual({ got: ['{"a":'], isEnded: false })
    expect(collect(body.copy())).toEqual({ got: ['{"a":', '1', '}'], isEnded: true })
  })

  test('ends at once if it has no pieces', () => {
    expect([new BufferBody([]).bytes.length, collect(new BufferBody([]))]).toEqual([0, { got: [], isEnded: true }])
  })
})
