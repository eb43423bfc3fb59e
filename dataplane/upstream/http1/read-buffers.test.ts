import { describe, expect, test } from '@jest/globals'
import { LargeBuffers, sharedBuffer } from './read-buffers.ts'

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

function attach(buffers: LargeBuffers): Buffer {
  const buffer = buffers.attach()
  if (buffer === undefined) throw new Error('no buffer')
  return buffer
}
