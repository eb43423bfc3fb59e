import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'a page replaces the body, and what described it': async (run) => {
    const { status, headers, body } = await run.send(8080, { path: '/app?status=500&header=etag:"v1"&header=x-kept:1' })
    expect([status, body.trim()]).toEqual([500, '<h1>Something went wrong</h1>'])
    expect(headers).toMatchObject({ 'content-type': 'text/html', 'cache-control': 'no-store' })
    expect(headers['etag']).toBeUndefined()
  },
  'only GET requests are redirected': async (run) => {
    const { status, headers } = await run.send(8080, { method: 'POST', path: '/app?status=503' })
    expect([status, headers['location']]).toEqual([503, undefined])
  },
})
