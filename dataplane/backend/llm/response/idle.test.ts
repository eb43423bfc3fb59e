import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import type { Body, BodySink } from '../../../http/body.ts'
import { passChat } from '../convert/native.ts'
import { EventBody } from './event-body.ts'

/** `streamIdleTimeout` with a manual clock. */

beforeEach(() => void jest.useFakeTimers())
afterEach(() => void jest.useRealTimers())

const piece = Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'hello' }, finish_reason: null }] })}\n\n`)
const idleMs = 1000

/** A started stream whose upstream the test controls. */
function startStream(format: 'completions' | 'responses' = 'completions') {
  let upstream: BodySink | undefined
  const source: Body = { length: undefined, start: (sink) => void (upstream = sink), pause: () => undefined, resume: () => undefined, cancel: () => undefined }
  const context = { memo: { model: 'm', isStreaming: true, toolNames: new Map<string, string>() }, header: () => undefined, hex: () => '', nowMs: () => 0 }
  const ends: string[] = []
  const body = new EventBody(source, passChat(format).stream(context), { guard: undefined, idleMs, onClose: (end) => void ends.push(end) })
  body.start({ onData: () => undefined, onEnd: () => undefined, onError: () => undefined })
  return {
    body,
    ends,
    send: (bytes = piece) => upstream?.onData(bytes),
    fail: () => upstream?.onError(new Error('reset')),
    end: () => upstream?.onEnd(undefined),
  }
}

test('a stream ends after a pause of streamIdleTimeout, and every piece starts the time anew', () => {
  const { ends, send } = startStream()
  jest.advanceTimersByTime(10 * idleMs)
  send()
  jest.advanceTimersByTime(idleMs - 1)
  send()
  jest.advanceTimersByTime(idleMs - 1)
  expect(ends).toEqual([])
  jest.advanceTimersByTime(1)
  expect(ends).toEqual(['timeout'])
})

test('a pause of the client does not count for streamIdleTimeout', () => {
  const { body, ends, send } = startStream()
  send()
  body.pause()
  jest.advanceTimersByTime(10 * idleMs)
  expect(ends).toEqual([])
  body.resume()
  jest.advanceTimersByTime(idleMs - 1)
  expect(ends).toEqual([])
  jest.advanceTimersByTime(1)
  expect(ends).toEqual(['timeout'])
})

test('a complete stream leaves no timer behind', () => {
  const { ends, send, end } = startStream()
  send()
  end()
  expect([ends.length, jest.getTimerCount()]).toEqual([1, 0])
})

const completed = Buffer.from(
  `event: response.completed\ndata: ${JSON.stringify({ type: 'response.completed', response: { id: 'r', status: 'completed', output: [] } })}\n\n`,
)

test('a Responses stream ends soon after its terminator if the upstream keeps the connection open', () => {
  const { ends, send } = startStream('responses')
  send(completed)
  expect(ends).toEqual([])
  jest.runOnlyPendingTimers()
  expect(ends).toEqual(['complete'])
})

test('a connection that is reset after the terminator of a Responses stream is no error', () => {
  const { ends, send, fail } = startStream('responses')
  send(completed)
  fail()
  expect([ends, jest.getTimerCount()]).toEqual([['complete'], 0])
})
