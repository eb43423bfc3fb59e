import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'header modifiers apply to the response, and no request reaches the upstream': async (run) => {
    const before = run.upstream('app').requests.length
    const { status, headers } = await run.send(8080, { path: '/shop', method: 'POST', body: 'x' })
    expect([status, headers['retry-after'], headers['content-type']]).toEqual([503, '3600', undefined])
    expect(run.upstream('app').requests.length).toBe(before)
  },
})
