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
    expect([...new Set(statuses)].toSorted()).toEqual([200, 503])
    expect(run.upstream('app').requests.length - before).toBe(statuses.filter((status) => status === 200).length)
  },
  'requests without the header have no faults': async (run) => {
    const results = await Promise.all(Array.from({ length: 20 }, async () => (await run.send(8080, {})).status))
    expect(new Set(results)).toEqual(new Set([200]))
  },
})
