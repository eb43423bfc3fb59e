import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'an endpoint whose checks fail receives no requests, as the metrics report': async (run) => {
    const failing = /^proxy_upstream_failing_endpoints\{backend="[a-z-]+\/app:80"\} 1$/m
    while (!failing.test(await run.dataplane.metrics())) await new Promise((resolve) => setTimeout(resolve, 100))
    const names = new Set<string>()
    for (let index = 0; index < 20; index++) names.add((await run.send(8080)).json().name)
    expect([...names]).toEqual(['one'])
  },
})
