import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'a request over the limit gets 429 with the reset time and does not reach the upstream': async (run) => {
    while ((await run.send(8080, { path: '/search' })).status === 200);
    const before = run.upstream('app').requests.length
    const response = await run.send(8080, { path: '/search?q=1' })
    expect([response.status, response.body]).toEqual([429, 'rate limit exceeded'])
    expect(response.headers).toMatchObject({ 'x-ratelimit-limit': '3', 'x-ratelimit-remaining': '0' })
    const reset = Number(response.headers['x-ratelimit-reset'])
    expect([reset > 3000, reset <= 3600]).toEqual([true, true])
    expect(run.upstream('app').requests.length).toBe(before)
  },
  'other routes use the limit of the Gateway': async (run) => {
    const left = async () => Number((await run.send(8080)).headers['x-ratelimit-remaining'])
    const before = await left()
    expect(await left()).toBe(before - 1)
  },
})
