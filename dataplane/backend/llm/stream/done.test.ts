import { describe, expect, test } from '@jest/globals'
import { streams } from '../convert/testdata/streams.ts'
import { pair, responseContext } from '../convert/testing.ts'
import { renderEvents } from './event.ts'

const done = Buffer.from('data: [DONE]\r\n\r\n')

/** The bytes that clients of a native Responses stream get, if the upstream's arrive in pieces of this size. */
function pass(bytes: Buffer, pieceBytes: number): string {
  const stream = pair('responses', 'responses').stream(responseContext(), {})
  const out: string[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes) out.push(renderEvents(stream.push(bytes.subarray(at, at + pieceBytes))).toString())
  out.push(renderEvents(stream.end()).toString())
  expect([stream.isOver, stream.facts.isComplete, stream.facts.error]).toEqual([true, true, undefined])
  return out.join('')
}

describe('a native Responses stream', () => {
  test.each([1, 100, 100_000])('keeps a trailing [DONE] byte for byte in pieces of %s bytes', (pieceBytes) => {
    const bytes = Buffer.concat([streams.responsesText, done])
    expect(pass(bytes, pieceBytes)).toBe(bytes.toString())
  })

  test('drops other events after its terminator', () => {
    expect(pass(Buffer.concat([streams.responsesText, Buffer.from('data: {"type":"x"}\n\n')]), 100_000)).toBe(streams.responsesText.toString())
  })
})
