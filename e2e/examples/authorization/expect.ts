import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'one expression of an Allow is enough': async (run) => {
    const status = async (method: string, headers: Record<string, string> = {}) => (await run.send(8080, { path: '/reports', method, headers })).status
    expect([await status('GET'), await status('DELETE'), await status('DELETE', { 'x-team': 'finance' })]).toEqual([200, 403, 200])
  },
  'a header that is sent twice is not the one value that the rule asks for': async (run) => {
    const { status } = await run.send(8080, { path: '/reports', method: 'DELETE', headers: { 'x-team': ['finance', 'other'] } })
    expect(status).toBe(403)
  },
  'all expressions of a Require have to be true': async (run) => {
    const send = async (method: string, body: string) => (await run.send(8080, { path: '/chat', method, body })).status
    expect([await send('POST', '{"model":"medium"}'), await send('PUT', '{"model":"medium"}'), await send('POST', 'no JSON')]).toEqual([200, 403, 403])
  },
  'the upstream gets the body that was judged': async (run) => {
    expect((await run.send(8080, { path: '/chat', method: 'POST', body: '{"model":"small"}' })).json().body).toBe('{"model":"small"}')
  },
  'a body beyond the buffer cannot be judged, so it does not pass': async (run) => {
    const body = `{"model":"small","filler":"${'a'.repeat(3 * 1024 * 1024)}"}`
    expect((await run.send(8080, { path: '/chat', method: 'POST', body })).status).toBe(403)
  },
  'the beginning of a body can be judged, whatever its size, and all of it goes on': async (run) => {
    const rest = 'a'.repeat(5 * 1024 * 1024)
    const upload = (body: string, protocol: 'http1' | 'http2') => run.send(8080, { path: '/uploads', method: 'POST', body, protocol })
    for (const protocol of ['http1', 'http2'] as const) {
      expect((await upload(`#!/bin/sh\n${rest}`, protocol)).status).toBe(403)
      expect((await upload(rest, protocol)).json().bodyBytes).toBe(rest.length)
    }
  },
  'what the Gateway denies no route allows': async (run) => {
    const { status, body } = await run.send(8080, { path: '/reports', headers: { 'x-team': 'finance', 'X-Internal': '' } })
    expect([status, body]).toEqual([403, 'authorization failed'])
  },
  'gRPC callers are told in their own way': async (run) => {
    const { status, headers } = await run.send(8080, { path: '/reports', method: 'POST', headers: { 'content-type': 'application/grpc' } })
    expect([status, headers['grpc-status'], headers['grpc-message']]).toEqual([200, '7', 'authorization%20failed'])
  },
})
