import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

const origin = 'https://shop.example.com'
const authorization = `Basic ${Buffer.from('bob:secret').toString('base64')}`

export default expectations({
  'an error response has CORS headers, so a page can read it': async (run) => {
    const { status, headers } = await run.send(8080, { headers: { origin } })
    expect([status, headers['access-control-allow-origin'], headers['access-control-allow-credentials']]).toEqual([401, origin, 'true'])
  },
  'CORS headers of the upstream are replaced by those of the policy': async (run) => {
    const path = '/?header=access-control-allow-origin:*'
    const { status, headers } = await run.send(8080, { path, headers: { origin, authorization } })
    expect([status, headers['access-control-allow-origin'], headers['access-control-expose-headers']]).toEqual([200, origin, 'x-total'])
    expect(headers['vary']).toMatch(/origin/i)
  },
  'preflights do not reach the upstream': async (run) => {
    const before = run.upstream('app').requests.length
    const headers = { 'access-control-request-method': 'PUT' }
    expect((await run.send(8080, { method: 'OPTIONS', headers: { ...headers, origin } })).status).toBe(200)
    expect((await run.send(8080, { method: 'OPTIONS', headers: { ...headers, origin: 'https://evil.example.com' } })).status).toBe(200)
    expect(run.upstream('app').requests.length).toBe(before)
  },
})
