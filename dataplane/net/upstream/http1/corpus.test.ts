import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import type { UpstreamCase } from '../../../http/corpus/case.ts'
import { upstreamCases } from '../../../http/corpus/upstream.ts'
import { readResponse, startRawUpstream, testRequest } from './testing.ts'
import { UpstreamError } from '../types.ts'
import { letArrive } from '../../../testing/turns.ts'

/** Makes a call, then a probe on the same pool: bytes after the first response must not be the response to the probe. */
async function run(one: UpstreamCase, pieceLength: number): Promise<void> {
  let isFirst = true
  const upstream = await startRawUpstream((socket) => {
    if (!isFirst) {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nprobe')
      return
    }
    isFirst = false
    const bytes = Buffer.from(one.bytes, 'latin1')
    for (let at = 0; at < bytes.length; at += pieceLength) socket.write(bytes.subarray(at, at + pieceLength))
    if (one.closes) socket.end()
    if (one.late !== undefined) setTimeout(() => socket.write(Buffer.from(one.late ?? '', 'latin1')), 20)
  })
  try {
    const call = upstream.pool.call(testRequest({ method: one.method ?? 'GET' }), { connectMs: 20_000 })
    const outcome = await call.response.then(readResponse, (error: unknown) => error)
    const failure = outcome instanceof UpstreamError ? outcome : (outcome as { error: unknown }).error
    expect(failure instanceof UpstreamError ? failure.failure : undefined).toBe(one.fails)
    if (one.response !== undefined) expect(outcome).toMatchObject({ text: one.response })
    if (one.late !== undefined) {
      await sleep(50)
      await letArrive()
    }
    const connections = upstream.received.length
    const probe = await upstream.pool.call(testRequest({ target: '/probe' }), { connectMs: 20_000 }).response.then(readResponse)
    expect(probe).toEqual({ text: '200 probe', error: undefined })
    expect(upstream.received.length).toBe(one.isReused ? connections : connections + 1)
  } finally {
    await upstream.close()
  }
}

describe('the corpus of hostile responses', () => {
  test.each(upstreamCases.map((one) => [one.name, one] as const))('has the required outcome for %s', (_, one) => run(one, Infinity))
})

describe('the corpus of hostile responses, three bytes at a time', () => {
  test.each(upstreamCases.filter(({ bytes }) => bytes.length < 2000).map((one) => [one.name, one] as const))('has the required outcome for %s', (_, one) =>
    run(one, 3),
  )
})

test('the cases of the corpus have unique names', () => {
  expect(new Set(upstreamCases.map(({ name }) => name)).size).toBe(upstreamCases.length)
})
