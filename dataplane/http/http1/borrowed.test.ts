import { Duplex } from 'node:stream'
import { describe, expect, test } from '@jest/globals'
import type { BodySink } from '../body.ts'
import { ObservedBody } from '../observe.ts'
import { ManualBody } from '../../testing/body.ts'
import { OutgoingBody } from './outgoing.ts'

/** A socket whose writes complete when the test says so. */
class PendingSocket extends Duplex {
  readonly written: Buffer[] = []
  readonly #pending: (() => void)[] = []
  isFull = false

  constructor() {
    super({ highWaterMark: 65_536, decodeStrings: true })
  }

  override _read(): void {}

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.written.push(chunk)
    if (this.isFull) this.#pending.push(done)
    else done()
  }

  complete(): void {
    this.isFull = false
    for (const done of this.#pending.splice(0)) done()
  }
}

function startBody(isFull: boolean) {
  const socket = new PendingSocket()
  const source = new ManualBody()
  const outgoing = new OutgoingBody(socket, 'head\r\n\r\n', source, 10_000_000, undefined, { bodySent: () => undefined, bodyFailed: () => undefined })
  socket.on('drain', () => outgoing.onDrain())
  outgoing.start()
  socket.isFull = isFull
  return { socket, source, outgoing }
}

const isWrittenAs = ({ written }: PendingSocket, chunk: Buffer): boolean => written.at(-1)?.buffer === chunk.buffer

describe('a borrowed chunk', () => {
  test('is written without a copy and not held if the socket accepts it at once', () => {
    const { socket, outgoing } = startBody(false)
    const chunk = Buffer.allocUnsafeSlow(200_000).fill('x')
    expect(outgoing.onBorrowed(chunk, true)).toBe(false)
    expect(isWrittenAs(socket, chunk)).toBe(true)
  })

  test('is held while its write is pending, and its source is paused until then', async () => {
    const { socket, source, outgoing } = startBody(true)
    const chunk = Buffer.allocUnsafeSlow(200_000).fill('x')
    expect(outgoing.onBorrowed(chunk, true)).toBe(true)
    expect(isWrittenAs(socket, chunk)).toBe(true)
    expect(source.asked).toEqual(['start', 'pause'])
    socket.complete()
    await new Promise((resolve) => setImmediate(resolve))
    expect(source.asked).toEqual(['start', 'pause', 'resume'])
  })

  test('that must not be held is copied', () => {
    const { socket, outgoing } = startBody(true)
    const chunk = Buffer.allocUnsafeSlow(60_000).fill('x')
    expect(outgoing.onBorrowed(chunk, false)).toBe(false)
    expect(isWrittenAs(socket, chunk)).toBe(false)
    chunk.fill('y')
    expect(socket.written.at(-1)).toEqual(Buffer.alloc(60_000, 'x'))
  })

  test('of less than the high-water mark is copied behind a pending write', () => {
    const { socket, outgoing } = startBody(true)
    outgoing.onBorrowed(Buffer.allocUnsafeSlow(20_000).fill('x'), true)
    const chunk = Buffer.allocUnsafeSlow(20_000).fill('y')
    expect(outgoing.onBorrowed(chunk, true)).toBe(false)
    chunk.fill('z')
    socket.complete()
    expect(socket.written.at(-1)).toEqual(Buffer.alloc(20_000, 'y'))
  })

  test('that is joined with the head is not held', () => {
    const { outgoing } = startBody(true)
    expect(outgoing.onBorrowed(Buffer.allocUnsafeSlow(4096).fill('x'), true)).toBe(false)
  })
})

describe('an observed body', () => {
  const sink: BodySink = { onData: () => undefined, onBorrowed: () => true, onEnd: () => undefined, onError: () => undefined }
  const borrowed = Buffer.allocUnsafeSlow(100)

  test('passes borrowed chunks on if its observer reads no data', () => {
    const source = new ManualBody()
    const observed = new ObservedBody(source, { onClose: () => undefined })
    observed.start(sink)
    const { sink: inner } = source
    expect(inner?.onBorrowed?.(borrowed, true)).toBe(true)
    observed.cancel()
    expect(inner?.onBorrowed?.(borrowed, true)).toBe(false)
  })

  test.each([
    ['its observer may keep data', { onData: () => undefined }, sink],
    ['its sink keeps data', {}, { onData: () => undefined, onEnd: () => undefined, onError: () => undefined }],
  ])('receives copies if %s', (_, observer, target) => {
    const source = new ManualBody()
    new ObservedBody(source, observer).start(target)
    expect(source.sink?.onBorrowed).toBeUndefined()
  })
})
