import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'an endpoint is evicted after two unhealthy responses in a row': async (run) => {
    // The first endpoint with two unhealthy responses in a row is evicted; then the other one receives all requests.
    let out: string | undefined
    const bad: string[] = []
    while (out === undefined) {
      const { name } = (await run.send(8080, { path: '/?header=x-health:bad' })).json()
      bad.push(name)
      if (bad.filter((each) => each === name).length === 2) out = name
    }
    const names = new Set<string>()
    for (let index = 0; index < 20; index++) names.add((await run.send(8080)).json().name)
    expect(names.has(out)).toBe(false)
    const metrics = await run.dataplane.metrics()
    expect(metrics).toMatch(/^proxy_upstream_evicted_endpoints\{backend="[a-z-]+\/app:80"\} 1$/m)
  },
})
