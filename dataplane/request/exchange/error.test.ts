import { describe, expect, test } from '@jest/globals'
import { errorTable, type ErrorCode, type ErrorRow } from '#api/errors.ts'
import { UpstreamError } from '../../net/upstream/types.ts'
import { readBody } from '../../http/body.ts'
import { testRequest } from '../../testing/exchange.ts'
import { ProxyError, toErrorResponse } from './error.ts'

const codes = Object.keys(errorTable) as ErrorCode[]
const withStatus = (...statuses: number[]): ErrorCode[] => codes.filter((code) => statuses.includes(errorTable[code].status))
const requests = [testRequest(), testRequest({}, { 'content-type': 'application/grpc' })]
const headersOf = (error: ProxyError, name: string): (string | undefined)[] =>
  requests.map((request) => toErrorResponse(error, request, () => ({ contentType: 'application/json', body: '{}' })).headers.get(name))

describe('a response of the gateway', () => {
  test.each(withStatus(401))('401 of %s has a challenge', (code) => {
    expect(headersOf(new ProxyError(code), 'www-authenticate')).toEqual(['Bearer', 'Bearer'])
    const own = new ProxyError(code, { headers: { 'www-authenticate': 'Basic realm="a"' } })
    expect(headersOf(own, 'www-authenticate')).toEqual(['Basic realm="a"', 'Basic realm="a"'])
  })

  test.each(withStatus(429))('429 of %s has retry-after when its limit says it, or by the table', (code) => {
    const known = new ProxyError(code, { headers: { 'retry-after': '7' } })
    expect(headersOf(known, 'retry-after')).toEqual(['7', '7'])
    const { retryAfter }: ErrorRow = errorTable[code]
    expect(headersOf(new ProxyError(code), 'retry-after')[0]).toBe(retryAfter?.toString())
  })

  test.each(withStatus(429, 503))('%s has retry-after if a cause knows the delay', (code) => {
    const open = new UpstreamError('connect', 'the circuit is open', undefined, 1200)
    for (const cause of [open, new Error('the call failed', { cause: open })])
      expect(headersOf(new ProxyError(code, { cause }), 'retry-after')).toEqual(['2', '2'])
  })

  test.each(['CONNECTION_LIMIT', 'HELD_BYTES', 'BUDGET_SHARE', 'RATE_LIMIT'] as const)('%s says that a limit of the gateway frees up in 1 s', (code) => {
    expect(headersOf(new ProxyError(code), 'retry-after')).toEqual(['1', '1'])
  })

  test('has neither if its status does not need them', () => {
    for (const code of codes.filter((one) => ![401, 429, 503].includes(errorTable[one].status))) expect(new ProxyError(code).headers).toEqual({})
    expect(new ProxyError('NO_HEALTHY_BACKENDS').headers).toEqual({})
  })

  test.each(withStatus(401, 429, 503))('%s says the reason in its body', async (code) => {
    const { body } = toErrorResponse(new ProxyError(code), testRequest())
    expect((await readBody(body, 1000)).bytes.toString()).toBe(errorTable[code].text)
  })
})
