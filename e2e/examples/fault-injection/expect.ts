import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'requests of a test are delayed, and some fail without reaching the upstream': async (run) => {
    const before = run.upstream('app').requests.length
    const statuses: number[] = []
    const startedAtMs = performance.now()
    // The chance that all have the same result is 2^-39.
    await Promise.all(Array.from({ length: 40 }, async () => statuses.push((await run.send(8080, { headers: { 'x-test': 'resilience' } })).status)))
    expect(performance.now() - startedAtMs).toBeGreaterThan(90)
    expect(new Set(statuses)).toEqual(new Set([200, 503]))
    expect(run.upstream('app').requests.length - before).toBe(statuses.filter((status) => status === 200).length)
  },
  'a body above the limit does not reach the upstream, whether its length is known or not': async (run) => {
    const before = run.upstream('app').requests.length
    for (const headers of [{}, { 'transfer-encoding': 'chunked' }])
      expect((await run.send(8080, { method: 'POST', headers, body: 'x'.repeat(1001) })).status).toBe(413)
    expect(run.upstream('app').requests.length).toBe(before)
    expect((await run.send(8080, { method: 'POST', body: 'x'.repeat(1000) })).status).toBe(200)
  },
  'a response has its bandwidth': async (run) => {
    const startedAtMs = performance.now()
    const { body } = await run.send(8080, { path: '/?size=10000' })
    expect(body.length).toBe(10_000)
    // 2,000 bytes at once, then 20 of each millisecond.
    expect(performance.now() - startedAtMs).toBeGreaterThan(350)
  },
  'requests without the header have no faults': async (run) => {
    const results = await Promise.all(Array.from({ length: 20 }, async () => (await run.send(8080, {})).status))
    expect(new Set(results)).toEqual(new Set([200]))
  },
})
