import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'the log names the client and the request': async (run) => {
    const response = await run.send(8080, { headers: { 'x-forwarded-for': '[2001:db8::7]:443', 'x-request-id': 'of-the-proxy' } })
    const { headers } = response.json() as { headers: Record<string, string> }
    expect(headers).toMatchObject({ 'x-forwarded-proto': 'http', 'x-request-id': 'of-the-proxy' })
    await run.dataplane.program.waitForLine(/src\.addr=\[2001:db8::7\]:443.*request\.id=of-the-proxy/)
  },
  'a rejected request has an id and does not reach the upstream': async (run) => {
    const before = run.upstream('app').requests.length
    const { status, headers } = await run.send(8080, { headers: { 'x-forwarded-for': '203.0.113.9:443' } })
    expect([status, headers['x-request-id']]).toEqual([403, expect.stringMatching(/^[\da-f-]{36}$/)])
    expect(run.upstream('app').requests.length).toBe(before)
  },
})
