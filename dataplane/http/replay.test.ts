import { describe, expect, test } from '@jest/globals'
import type { Body, BodySink } from './body.ts'
import { ReplayableBody } from './replay.ts'

class ManualBody implements Body {
  readonly length: number | undefined
  sink: BodySink | undefined
  isPaused = false
  isCancelled = false
  constructor(length?: number) {
    this.length = length
  }
  start(sink: BodySink): void {
    this.sink = sink
  }
  pause(): void {
    this.isPaused = true
  }
  resume(): void {
    this.isPaused = false
  }
  cancel(): void {
    this.isCancelled = true
  }
}

function collect(): BodySink & { text: string; isEnded: boolean } {
  return {
    text: '',
    isEnded: false,
    onData(chunk) {
      this.text += chunk.toString()
    },
    onEnd() {
      this.isEnded = true
    },
    onError() {},
  }
}

describe('ReplayableBody', () => {
  test('replays the buffered bytes to the second attempt, then the rest', () => {
    const source = new ManualBody()
    const replayable = new ReplayableBody(source)
    const first = replayable.nextAttempt()
    const firstSink = collect()
    first.start(firstSink)
    source.sink?.onData(Buffer.from('ab'))
    first.cancel()
    expect(source.isPaused).toBe(true)
    expect(source.isCancelled).toBe(false)

    const secondSink = collect()
    replayable.nextAttempt().start(secondSink)
    expect(source.isPaused).toBe(false)
    source.sink?.onData(Buffer.from('cd'))
    source.sink?.onEnd(undefined)
    expect([firstSink.text, secondSink.text, secondSink.isEnded]).toEqual(['ab', 'abcd', true])
  })

  test('replays a body that has ended completely', () => {
    const source = new ManualBody(2)
    const replayable = new ReplayableBody(source)
    const first = replayable.nextAttempt()
    first.start(collect())
    source.sink?.onData(Buffer.from('ab'))
    source.sink?.onEnd(undefined)
    first.cancel()
    const sink = collect()
    replayable.nextAttempt().start(sink)
    expect([sink.text, sink.isEnded]).toEqual(['ab', true])
  })

  test('is not replayable if its length exceeds the limit', () => expect(new ReplayableBody(new ManualBody(65_537)).isReplayable).toBe(false))

  test('stops being replayable past the limit and still delivers the body', () => {
    const source = new ManualBody()
    const replayable = new ReplayableBody(source)
    const sink = collect()
    replayable.nextAttempt().start(sink)
    source.sink?.onData(Buffer.alloc(65_536, 'a'))
    expect(replayable.isReplayable).toBe(true)
    source.sink?.onData(Buffer.from('b'))
    expect(replayable.isReplayable).toBe(false)
    expect(sink.text.length).toBe(65_537)
  })

  test('cancels its source when it is cancelled', () => {
    const source = new ManualBody()
    const replayable = new ReplayableBody(source)
    replayable.nextAttempt().start(collect())
    replayable.cancel()
    expect(source.isCancelled).toBe(true)
  })
})
