import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'each tenant has its own counter in the service': async (run) => {
    const call = async (tenant: string) => {
      const { status, headers } = await run.send(8080, { path: '/search', headers: { 'x-tenant': tenant } })
      return [status, headers['x-ratelimit-remaining']]
    }
    expect([await call('red'), await call('red'), await call('red'), await call('pink')]).toEqual([
      [200, '1'],
      [200, '0'],
      [429, '0'],
      [200, '1'],
    ])
  },
  'a request without a counter is not limited': async (run) => {
    for (let nth = 0; nth < 4; nth++) expect((await run.send(8080, { path: '/search' })).status).toBe(200)
  },
})
