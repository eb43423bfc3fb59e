import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import fc from 'fast-check'
import { BufferBody, type Body } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { compose } from '../../request/exchange/compose.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { ManualBody } from '../../testing/body.ts'
import { createPolicyState } from '../state.ts'
import { ThrottledBody } from './body.ts'
import { compileBandwidthLimit } from './index.ts'
import { Rate } from './rate.ts'

beforeEach(() => void jest.useFakeTimers())
afterEach(() => void jest.useRealTimers())
const nowMs = (): number => performance.now()

/** Reads a body; `bytes` are those so far. */
function read(body: Body) {
  const seen = { bytes: 0, text: '', ended: false, error: undefined as Error | undefined }
  body.start({
    onData(chunk) {
      seen.bytes += chunk.length
      seen.text += chunk.toString('latin1')
    },
    onEnd: () => void (seen.ended = true),
    onError: (error) => void (seen.error = error),
  })
  return seen
}

describe('a throttled body', () => {
  test('delivers a tenth of a second at once, then the rate', () => {
    const seen = read(new ThrottledBody(new BufferBody('x'.repeat(3000)), new Rate(1000, nowMs)))
    expect(seen.bytes).toBe(100)
    jest.advanceTimersByTime(1000)
    expect(seen.bytes).toBeGreaterThanOrEqual(1050)
    expect(seen.bytes).toBeLessThanOrEqual(1100)
    jest.advanceTimersByTime(1950)
    expect([seen.bytes, seen.ended, jest.getTimerCount()]).toEqual([3000, true, 0])
  })

  test('pauses its source while bytes wait, and resumes it then', () => {
    const source = new ManualBody()
    const seen = read(new ThrottledBody(source, new Rate(1000, nowMs)))
    source.push('x'.repeat(100))
    expect(source.asked).toEqual(['start'])
    source.push('x'.repeat(100))
    expect(source.asked).toEqual(['start', 'pause'])
    jest.advanceTimersByTime(100)
    expect([seen.bytes, source.asked.at(-1)]).toEqual([200, 'resume'])
  })

  test('obeys a sink that pauses, and ends after it has resumed', () => {
    const body = new ThrottledBody(new BufferBody('x'.repeat(200)), new Rate(1000, nowMs))
    const seen = read(body)
    body.pause()
    jest.advanceTimersByTime(1000)
    expect([seen.bytes, seen.ended]).toEqual([100, false])
    body.resume()
    jest.advanceTimersByTime(100)
    expect([seen.bytes, seen.ended]).toEqual([200, true])
  })

  test('leaves no timer when it is cancelled or fails', () => {
    const source = new ManualBody()
    const body = new ThrottledBody(source, new Rate(1000, nowMs))
    read(body)
    source.push('x'.repeat(1000))
    body.cancel()
    expect([source.asked.at(-1), jest.getTimerCount()]).toEqual(['cancel', 0])
    const failing = new ManualBody()
    const seen = read(new ThrottledBody(failing, new Rate(1000, nowMs)))
    failing.push('x'.repeat(1000))
    failing.fail(new Error('reset'))
    expect([seen.error?.message, jest.getTimerCount()]).toEqual(['reset', 0])
  })

  test('has the bytes of its source, whatever their chunks, the rate and the pauses', () => {
    const chunks = fc.array(fc.string({ minLength: 1, maxLength: 400 }), { maxLength: 8 })
    fc.assert(
      fc.property(chunks, fc.integer({ min: 1024, max: 100_000 }), fc.array(fc.integer({ min: 0, max: 80 }), { maxLength: 6 }), (texts, rate, pauses) => {
        const body = new ThrottledBody(new BufferBody(texts.map((text) => Buffer.from(text, 'latin1'))), new Rate(rate, nowMs))
        const seen = read(body)
        for (const ms of pauses) {
          body.pause()
          jest.advanceTimersByTime(ms)
          body.resume()
          jest.advanceTimersByTime(ms)
        }
        jest.advanceTimersByTime(10_000)
        expect([seen.text, seen.ended, jest.getTimerCount()]).toEqual([Buffer.from(texts.join(''), 'latin1').toString('latin1'), true, 0])
      }),
      { numRuns: 100 },
    )
  })
})

describe('a limit', () => {
  const send = (policy: ReturnType<typeof compileBandwidthLimit>) => {
    const request = testRequest({ method: 'POST', body: new BufferBody('x'.repeat(300)) })
    const exchange = new Exchange(testConnection, request, 0)
    void compose([policy], () => {
      exchange.response = { status: 200, headers: new HeaderList(), body: new BufferBody('y'.repeat(300)), upgraded: undefined }
    })(exchange)
    return { request: request.body, response: exchange.response?.body }
  }

  test.each([
    ['Target', 1050],
    ['Request', 2000],
  ] as const)('of scope %s delivers at most %d bytes of two responses in a second', (scope, most) => {
    const section = { response: { bytesPerSecond: 1000 }, scope }
    const state = createPolicyState()
    // Each rule of a target has a chain of its own.
    const bodies = [send(compileBandwidthLimit(section, state)), send(compileBandwidthLimit(section, state))]
    const seen = bodies.map(({ response }) => read(response as Body))
    jest.advanceTimersByTime(250)
    const total = seen.reduce((sum, { bytes }) => sum + bytes, 0)
    expect(total).toBeLessThanOrEqual(most / 4 + 200)
    expect(total).toBeGreaterThanOrEqual(scope === 'Target' ? 250 : 500)
    expect(bodies[0]?.request).toBeInstanceOf(BufferBody)
  })

  test('of one direction leaves the other as it is', () => {
    const { request, response } = send(compileBandwidthLimit({ request: { bytesPerSecond: 1024 } }, createPolicyState()))
    expect([request instanceof ThrottledBody, response instanceof BufferBody]).toEqual([true, true])
  })
})
