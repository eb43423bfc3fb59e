import { expect, test } from '@jest/globals'
import { Exchange } from '../../../request/exchange/exchange.ts'
import { UpstreamError } from '../../../net/upstream/types.ts'
import { testConnection, testRequest } from '../../../testing/exchange.ts'
import { McpFailure } from '../message/failure.ts'
import { failureResponse } from './answer.ts'

test.each([
  [503, 2500, '3'],
  [503, undefined, undefined],
  [500, 2500, undefined],
  [200, 2500, undefined],
])('a failure with status %d whose cause knows a delay of %p ms has retry-after %p', (status, delayMs, expected) => {
  const cause = new Error('call failed', { cause: new UpstreamError('connect', 'the circuit is open', undefined, delayMs) })
  const error = McpFailure.rpc(-32603, 'failed to send message', { status, cause })
  const response = failureResponse(new Exchange(testConnection, testRequest(), 0), error, { jsonrpc: '2.0', id: 1, method: 'tools/list' })
  expect([response?.status, response?.headers.get('retry-after')]).toEqual([status, expected])
})
