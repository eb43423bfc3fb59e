import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'about a tenth of 500 requests reaches the canary': async (run) => {
    let canary = 0
    for (let batch = 0; batch < 10; batch++) {
      const responses = await Promise.all(Array.from({ length: 50 }, () => run.send(8080)))
      canary += responses.filter((response) => response.json().name === 'canary').length
    }
    // A random result outside these bounds occurs less than once in 10^12 runs.
    expect(canary).toBeGreaterThan(5)
    expect(canary).toBeLessThan(105)
  },
  'the filter of a backend applies to its responses only': async (run) => {
    const responses = await Promise.all(Array.from({ length: 60 }, () => run.send(8080)))
    for (const response of responses) expect(response.headers['x-canary']).toBe(response.json().name === 'canary' ? 'yes' : undefined)
  },
})
