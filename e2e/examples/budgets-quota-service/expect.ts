import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'each tenant has the rate that the service assigns': async (run) => {
    const call = async (tenant: string) => {
      const { status, headers } = await run.send(8080, { path: '/search', headers: { 'x-tenant': tenant } })
      return [status, headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']]
    }
    expect([await call('red'), await call('red'), await call('red'), await call('pink')]).toEqual([
      [200, '2', '1'],
      [200, '2', '0'],
      [429, '2', '0'],
      [200, '2', '1'],
    ])
  },
  'a tenant that the service blocks is rejected, and one without a name': async (run) => {
    const { status, body } = await run.send(8080, { path: '/search', headers: { 'x-tenant': 'blocked' } })
    expect([status, body]).toEqual([429, expect.stringMatching(/^budget exceeded: budget "tenant" is used up until /)])
    expect((await run.send(8080, { path: '/search' })).status).toBe(403)
    expect(await run.dataplane.metrics()).toMatch(/proxy_budget_quota_connected\{service="[^"]*services:80",domain="shop"\} 1/)
  },
})
