import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'an Allow rule matches if one of its expressions is true': async (run) => {
    const status = async (method: string, headers: Record<string, string> = {}) => (await run.send(8080, { path: '/reports', method, headers })).status
    expect([await status('GET'), await status('DELETE'), await status('DELETE', { 'x-team': 'finance' })]).toEqual([200, 403, 200])
  },
  'a header that is sent twice does not match a rule for one value': async (run) => {
    const { status } = await run.send(8080, { path: '/reports', method: 'DELETE', headers: { 'x-team': ['finance', 'other'] } })
    expect(status).toBe(403)
  },
  'a Require rule needs all of its expressions to be true': async (run) => {
    const send = async (method: string, body: string) => (await run.send(8080, { path: '/chat', method, body })).status
    expect([await send('POST', '{"model":"medium"}'), await send('PUT', '{"model":"medium"}'), await send('POST', 'no JSON')]).toEqual([200, 403, 403])
  },
  'the upstream receives the body that the rule has read': async (run) => {
    expect((await run.send(8080, { path: '/chat', method: 'POST', body: '{"model":"small"}' })).json().body).toBe('{"model":"small"}')
  },
  'a body that exceeds the buffer is rejected': async (run) => {
    const body = `{"model":"small","filler":"${'a'.repeat(3 * 1024 * 1024)}"}`
    expect((await run.send(8080, { path: '/chat', method: 'POST', body })).status).toBe(403)
  },
  'a rule can read the start of a body of any size, and the upstream receives all of it': async (run) => {
    const rest = 'a'.repeat(5 * 1024 * 1024)
    const upload = (body: string, protocol: 'http1' | 'http2') => run.send(8080, { path: '/uploads', method: 'POST', body, protocol })
    for (const protocol of ['http1', 'http2'] as const) {
      expect((await upload(`#!/bin/sh\n${rest}`, protocol)).status).toBe(403)
      expect((await upload(rest, protocol)).json().bodyBytes).toBe(rest.length)
    }
  },
  'a route cannot allow a request that the Gateway denies': async (run) => {
    const { status, body } = await run.send(8080, { path: '/reports', headers: { 'x-team': 'finance', 'X-Internal': '' } })
    expect([status, body]).toEqual([403, 'authorization failed'])
  },
  'gRPC clients receive the denial as a gRPC status': async (run) => {
    const { status, headers } = await run.send(8080, { path: '/reports', method: 'POST', headers: { 'content-type': 'application/grpc' } })
    expect([status, headers['grpc-status'], headers['grpc-message']]).toEqual([200, '7', 'authorization%20failed'])
  },
})
