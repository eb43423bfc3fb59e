import { describe, expect, test } from '@jest/globals'
import { LargeBuffers, sharedBuffer } from './read-buffers.ts'
import { startRawUpstream, testRequest } from './testing.ts'
import { letArrive } from '../../../testing/turns.ts'
import { until } from '../../../../e2e/harness/wait.ts'

describe('the buffers of large bodies', () => {
  test('are reused after they were detached', () => {
    const buffers = new LargeBuffers()
    const first = attach(buffers)
    expect(attach(buffers)).not.toBe(first)
    buffers.detach(first, false)
    expect(attach(buffers)).toBe(first)
    expect(first.length).toBeGreaterThan(sharedBuffer.length)
  })

  test('are not reused while a write reads them', () => {
    const buffers = new LargeBuffers()
    const first = attach(buffers)
    buffers.detach(first, true)
    expect(attach(buffers)).not.toBe(first)
  })

  test('are limited in number, and free again once they were detached', () => {
    const buffers = new LargeBuffers()
    const attached: Buffer[] = []
    for (let next = buffers.attach(); next !== undefined; next = buffers.attach()) attached.push(next)
    expect(attached.length * attach(new LargeBuffers()).length).toBe(32 * 1024 * 1024)
    const [first, second] = attached
    if (first === undefined || second === undefined) throw new Error('no buffers')
    buffers.detach(first, false)
    buffers.detach(second, true)
    expect([buffers.attach(), buffers.attach(), buffers.attach()].map((buffer) => buffer === undefined)).toEqual([false, false, true])
  })
})

describe('the start of a large body that is read with its head', () => {
  const body = Buffer.from(Array.from({ length: 100_000 }, (_, nth) => String(nth).padStart(6)).join(''))
  const head = Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`)

  test.each([
    ['at once', 0],
    ['after more of it was read', 1],
  ])('may be held by a pending write, and later reads do not overwrite it, if its sink starts %s', async (_, later) => {
    let finish = (): void => undefined
    const upstream = await startRawUpstream((socket) => {
      socket.write(Buffer.concat([head, body.subarray(0, 5000)]))
      finish = () => void socket.write(body.subarray(5000))
    })
    try {
      for (let nth = 0; nth < 2; nth++) {
        const response = await upstream.pool.call(testRequest(), { connectMs: 20_000 }).response
        if (later > 0) finish()
        await letArrive(later * 50)
        const chunks: Buffer[] = []
        const held: (readonly [chunk: Buffer, canHold: boolean])[] = []
        let isEnded = false
        response.body?.start({
          onData: (chunk) => chunks.push(chunk),
          onBorrowed(chunk, canHold) {
            chunks.push(Buffer.from(chunk))
            held.push([chunk, canHold])
            return canHold
          },
          onEnd: () => (isEnded = true),
          onError: (error) => expect(error).toBeUndefined(),
        })
        if (later === 0) {
          // The start was copied into a buffer of its connection, not into memory of its own.
          expect(held.map(([chunk, canHold]) => [chunk.length, chunk.buffer.byteLength > sharedBuffer.length, canHold])).toEqual([[5000, true, true]])
          finish()
        }
        await until(() => isEnded)
        expect(Buffer.concat(chunks).equals(body)).toBe(true)
        let at = chunks.reduce((sum, chunk) => sum + chunk.length, 0) - held.reduce((sum, [chunk]) => sum + chunk.length, 0)
        for (const [chunk, canHold] of held) {
          if (canHold) expect(chunk.equals(body.subarray(at, at + chunk.length))).toBe(true)
          at += chunk.length
        }
      }
      expect(upstream.received.length).toBe(1)
    } finally {
      await upstream.close()
    }
  })
})

function attach(buffers: LargeBuffers): Buffer {
  const buffer = buffers.attach()
  if (buffer === undefined) throw new Error('no buffer')
  return buffer
}
