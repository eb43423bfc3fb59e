import { describe, expect, test } from '@jest/globals'
import { releaseBodies, readHeldBody } from '../exchange/held.ts'
import { bodyBudget } from '../../http/budget.ts'
import { HeaderList } from '../../http/headers.ts'
import { ManualBody } from '../../testing/body.ts'
import { limitHeldBytes } from '../../testing/budget.ts'
import { testExchange } from '../../testing/exchange.ts'
import { bufferedRequest, bufferRequest, bufferResponse, replaceRequestBody } from './buffer.ts'
import { recordBodies, recordedRequest } from './record.ts'

const rejected = { code: 'HELD_BYTES', headers: { 'retry-after': '1' } }

describe('bodies that are buffered for an exchange', () => {
  limitHeldBytes(10)

  test('count until the exchange is finished', async () => {
    const body = new ManualBody()
    const exchange = testExchange({ body })
    const buffering = bufferRequest(exchange, 100)
    body.push('1234')
    body.push('5678')
    body.end()
    await buffering
    expect(bufferedRequest(exchange)?.prefix.toString()).toBe('12345678')
    expect(bodyBudget.heldBytes).toBe(8)
    releaseBodies(exchange)
  })

  test('are rejected beyond the budget, with the time after which clients may retry', async () => {
    const body = new ManualBody()
    const buffering = bufferRequest(testExchange({ body }), 100)
    body.push('12345678')
    body.push('123')
    await expect(buffering).rejects.toMatchObject(rejected)
    expect(body.asked).toContain('cancel')
  })

  test('are freed when the client disconnects', async () => {
    const body = new ManualBody()
    const buffering = bufferRequest(testExchange({ body }), 100)
    body.push('12345678')
    body.fail(new Error('client disconnected'))
    await expect(buffering).rejects.toMatchObject({ code: 'PROCESSING_FAILED' })
  })

  test('of responses are rejected beyond the budget', async () => {
    const body = new ManualBody()
    const exchange = testExchange()
    exchange.response = { status: 200, headers: new HeaderList(), body, upgraded: undefined }
    const buffering = bufferResponse(exchange, 100)
    body.push('12345678901')
    await expect(buffering).rejects.toMatchObject(rejected)
  })

  test('that a transformation creates are rejected beyond the budget', () => {
    const exchange = testExchange()
    replaceRequestBody(exchange, Buffer.from('12345678'))
    expect(bodyBudget.heldBytes).toBe(8)
    expect(() => replaceRequestBody(exchange, Buffer.from('123'))).toThrow(expect.objectContaining(rejected))
    releaseBodies(exchange)
  })

  test('count for the original of a fork', () => {
    const exchange = testExchange()
    const fork = exchange.fork(exchange.request).fork(exchange.request)
    replaceRequestBody(fork, Buffer.from('12345678'))
    expect(bodyBudget.heldBytes).toBe(8)
    releaseBodies(exchange)
  })

  test('are not counted for ever if reading starts after the exchange is finished', async () => {
    const exchange = testExchange()
    releaseBodies(exchange)
    const body = new ManualBody()
    const read = readHeldBody(exchange, body, 100)
    body.push('12345678')
    expect(bodyBudget.heldBytes).toBe(8)
    body.end()
    expect((await read).bytes.toString()).toBe('12345678')
  })

  test('are not recorded for logs beyond the budget, and the request continues', () => {
    const body = new ManualBody()
    const exchange = testExchange({ body })
    void recordBodies(exchange, { request: true, response: false, limitBytes: 100 }, () => undefined)
    const received: string[] = []
    exchange.request.body?.start({ onData: (chunk) => void received.push(chunk.toString()), onEnd() {}, onError() {} })
    body.push('12345678')
    body.push('123')
    body.push('4')
    expect(received).toEqual(['12345678', '123', '4'])
    expect(recordedRequest(exchange)?.toString()).toBe('12345678')
    releaseBodies(exchange)
  })
})
