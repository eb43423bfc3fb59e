import { afterEach, describe, expect, test } from '@jest/globals'
import type { BackendFull, Transformation } from '#gen/config/types.ts'
import { waitUntil } from '../../../../e2e/harness/wait.ts'
import { chat, sdkRoutes, startTestBed, type TestBed } from '../testing/test-bed.ts'
import { variables } from '../../../request/exchange/variables.ts'

let bed: TestBed | undefined
afterEach(async () => {
  await bed?.close()
  bed = undefined
})

const transformation: Transformation = {
  request: { metadata: { team: 'request.headers["x-team"]' }, set: [{ name: 'x-sent', value: 'metadata.team' }] },
  response: {
    set: [
      { name: 'x-code', value: 'string(response.code)' },
      { name: 'x-team', value: 'metadata.team' },
    ],
  },
}

describe("a backend's transformation", () => {
  test('keeps metadata for its response side and for logs', async () => {
    const accessLog = { attributes: { add: [{ name: 'team', expression: 'metadata.team' }] } }
    bed = await startTestBed({ policies: { transformation }, onGateway: [{ frontend: { accessLog } }] })
    const response = await bed.post({ body: chat('x'), headers: { 'x-team': 'red' } })
    expect([response.status, response.headers['x-team'], bed.mock.requests[0]?.headers['x-sent']]).toEqual([200, 'red', 'red'])
    const { finished } = bed.gateway
    await waitUntil('the end of the request', () => finished.length > 0)
    expect(finished[0] && variables.metadata.get(finished[0])).toEqual({ team: 'red' })
  })

  test('without metadata keeps that of the route', async () => {
    const traffic = { transformation: { request: { metadata: { from: '"route"' } } } }
    const set = [{ name: 'x-from', value: 'metadata.from' }]
    bed = await startTestBed({ policies: { transformation: { request: { set }, response: { set } } }, onGateway: [{ traffic }] })
    const response = await bed.post({ body: chat('x') })
    expect([response.headers['x-from'], bed.mock.requests[0]?.headers['x-from']]).toEqual(['route', 'route'])
  })

  // It runs after credentials are set, but its response side also applies to requests that fail earlier (traffic.md §5 step 8).
  test.each<[string, Omit<BackendFull, 'transformation'>, { path?: string; body?: unknown }, number, string | undefined]>([
    ['a request that cannot be parsed', {}, { body: '{' }, 400, '400'],
    [
      'a request that a guard rejects',
      { ai: { promptGuard: { request: [{ regex: { matches: ['x'], action: 'Reject' }, response: { statusCode: 422 } }] } } },
      { body: chat('x') },
      422,
      '422',
    ],
    ['a token count of the gateway', { ai: { routes: sdkRoutes } }, { path: '/v1/messages/count_tokens', body: chat('x') }, 200, '200'],
    ['the list of models', { ai: { routes: sdkRoutes } }, { path: '/v1/models' }, 200, '200'],
    ['missing credentials, to which it does not apply', { auth: { secretRef: { secret: 'opaque/ns/nothing' } } }, { body: chat('x') }, 500, undefined],
  ])('has a response side that applies to %s', async (_, policies, request, status, expected) => {
    bed = await startTestBed({ policies: { ...policies, transformation } })
    const response = await bed.post(request)
    expect([response.status, response.headers['x-code'], bed.mock.requests.length]).toEqual([status, expected, 0])
  })
})
