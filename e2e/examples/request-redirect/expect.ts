import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'HTTP answers 301 and never reaches the upstream': async (run) => {
    const before = run.upstream('site').requests.length
    const response = await run.send(8080, { path: '/secret', method: 'POST', body: 'x' })
    expect([response.status, response.body]).toEqual([301, ''])
    expect(run.upstream('site').requests.length).toBe(before)
  },
  'a moved path keeps what follows the prefix, and the query; the status is 302 by default': async (run) => {
    const response = await run.send(8443, { path: '/old/a/b?c=1', host: `localhost:${run.port(8443)}`, tls: run.tls('localhost') })
    expect([response.status, response.headers['location']]).toEqual([302, `https://localhost:${run.port(8443)}/new/a/b?c=1`])
  },
  'a prefix is a whole path segment': async (run) => {
    const response = await run.send(8443, { path: '/older', tls: run.tls('localhost') })
    expect(response.json().path).toBe('/older')
  },
})
