import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'a host that is allowed is reached': async (run) => {
    const response = await run.send(8080, { headers: { host: `localhost:${run.port(9001)}` } })
    expect(response.status).toBe(200)
  },
  'an address that is not allowed is not reached': async (run) => {
    const before = run.upstream('app').requests.length
    expect((await run.send(8080, { headers: { host: `127.0.0.1:${run.port(9001)}` } })).status).toBe(403)
    expect(run.upstream('app').requests.length).toBe(before)
  },
  'the gateway itself is not reached': async (run) => {
    expect((await run.send(8080, { headers: { host: `localhost:${run.port(8080)}` } })).status).toBe(403)
  },
})
