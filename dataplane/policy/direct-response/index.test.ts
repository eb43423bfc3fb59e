import { expect, test } from '@jest/globals'
import { mountPolicies } from '../../testing/hono.ts'
import { compileDirectResponse } from './index.ts'

test.each([
  [200, 'hi', 'hi'],
  [503, 'é', 'é'],
  [404, undefined, ''],
  [204, 'dropped', ''],
  [304, 'dropped', ''],
])('a direct response has status %d and body %j', async (status, body, text) => {
  const { response, isForwarded, exchange } = await mountPolicies([compileDirectResponse({ status, body })]).request('http://host/')
  expect([response.status, await response.text(), isForwarded, exchange.isLocalAnswer]).toEqual([status, text, false, true])
  expect(response.headers.get('content-type')).toBeNull()
})

test('a direct response to a gRPC call keeps its status', async () => {
  const app = mountPolicies([compileDirectResponse({ status: 418 })])
  expect((await app.request('http://host/', { headers: { 'content-type': 'application/grpc' } })).response.status).toBe(418)
})
