import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { Http2FrameReader } from './frames.ts'
import { frame, FrameCollector } from './testing.ts'

const anyFrame = fc.record({
  type: fc.integer({ min: 0, max: 255 }),
  flags: fc.integer({ min: 0, max: 255 }),
  id: fc.integer({ min: 0, max: 0x7fff_ffff }),
  payload: fc.uint8Array({ maxLength: 600 }).map((bytes) => Buffer.from(bytes)),
})

describe('frame reader', () => {
  test('reads the same frames however their bytes are split', () => {
    fc.assert(
      fc.property(fc.array(anyFrame, { maxLength: 12 }), fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 40 }), (sent, sizes) => {
        const bytes = Buffer.concat(sent.map(({ type, flags, id, payload }) => frame(type, flags, id, payload)))
        const collector = new FrameCollector()
        let at = 0
        for (const size of sizes) {
          // A copy, because the reader may keep views.
          collector.reader.read(Buffer.from(bytes.subarray(at, at + size)))
          at = Math.min(bytes.length, at + size)
        }
        collector.reader.read(Buffer.from(bytes.subarray(at)))
        expect(collector.frames).toEqual(sent)
      }),
    )
  })

  test('rejects a frame that is too large before its payload arrives', () => {
    const reader = new Http2FrameReader(new FrameCollector(), 100)
    expect(() => reader.read(frame(0, 0, 1, Buffer.alloc(101)).subarray(0, 9))).toThrow('frame of 101 bytes exceeds 100')
    const split = new Http2FrameReader(new FrameCollector(), 100)
    split.read(frame(0, 0, 1, Buffer.alloc(101)).subarray(0, 5))
    expect(() => split.read(frame(0, 0, 1, Buffer.alloc(101)).subarray(5, 9))).toThrow('frame of 101 bytes exceeds 100')
  })

  test('keeps frames while its sink does not accept them', () => {
    const read: number[] = []
    const sink = {
      acceptsFrames: true,
      readFrame: (...[, , , , , id]: [Buffer, number, number, number, number, number]) => void (sink.acceptsFrames = read.push(id) % 2 === 1),
    }
    const reader = new Http2FrameReader(sink, 100)
    const bytes = Buffer.concat([1, 2, 3, 4, 5].map((id) => frame(0, 0, id, 'abc')))
    reader.read(bytes.subarray(0, 30))
    expect(read).toEqual([1, 2])
    reader.read(bytes.subarray(30))
    expect(read).toEqual([1, 2])
    sink.acceptsFrames = true
    reader.resume()
    expect(read).toEqual([1, 2, 3, 4])
    sink.acceptsFrames = true
    reader.resume()
    expect(read).toEqual([1, 2, 3, 4, 5])
  })
})
