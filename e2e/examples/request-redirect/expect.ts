import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'a plain HTTP request gets 301 and does not reach the upstream': async (run) => {
    const before = run.upstream('site').requests.length
    const response = await run.send(8080, { path: '/secret', method: 'POST', body: 'x' })
    expect([response.status, response.body]).toEqual([301, ''])
    expect(run.upstream('site').requests.length).toBe(before)
  },
  'a replaced prefix keeps the rest of the path and the query; the default status is 302': async (run) => {
    const response = await run.send(8443, { path: '/old/a/b?c=1', host: `localhost:${run.port(8443)}`, tls: run.tls('localhost') })
    expect([response.status, response.headers['location']]).toEqual([302, `https://localhost:${run.port(8443)}/new/a/b?c=1`])
  },
  'a prefix matches complete path segments only': async (run) => {
    const response = await run.send(8443, { path: '/older', tls: run.tls('localhost') })
    expect(response.json().path).toBe('/older')
  },
})
