import { expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { encodeFrame, FrameReader } from './frames.ts'

test('FrameReader returns the encoded messages however the bytes are split', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 }), (messages, cuts) => {
      const bytes = Buffer.concat(messages.map((message) => encodeFrame(message)))
      const reader = new FrameReader(40)
      const read: Buffer[] = []
      for (let at = 0, nth = 0; at < bytes.length; nth++) {
        const size = cuts[nth % cuts.length] ?? 1
        reader.push(bytes.subarray(at, at + size))
        at += size
        for (let message = reader.next(); message !== undefined; message = reader.next()) read.push(message)
      }
      expect(read.map((message) => [...message])).toEqual(messages.map((message) => [...message]))
      expect(reader.isAtBoundary).toBe(true)
    }),
  )
})

test('FrameReader returns no incomplete message', () => {
  const reader = new FrameReader(40)
  reader.push(encodeFrame(Buffer.from('whole')).subarray(0, 9))
  expect([reader.next(), reader.isAtBoundary]).toEqual([undefined, false])
})
