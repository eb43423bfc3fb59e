import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'a response within the timeout passes': async (run) => {
    expect((await run.send(8080, { path: '/slow?delay=10' })).status).toBe(200)
  },
  'a body that exceeds the timeout is cut off, because the head was already sent': async (run) => {
    await expect(run.send(8080, { path: '/slow?chunks=100&interval=100' })).rejects.toThrow()
  },
  'two failures are retried, with the attempt number in x-retry-attempt': async (run) => {
    const response = await run.send(8080, { path: '/flaky?failures=2&id=twice' })
    expect(response.status).toBe(200)
    const tries = run.upstream('app').requests.filter((request) => request.path.includes('id=twice'))
    expect(tries.map((request) => request.headers['x-retry-attempt'])).toEqual([undefined, '1', '2'])
  },
  'the third failure is returned to the client': async (run) => {
    expect((await run.send(8080, { path: '/flaky?failures=3&id=thrice' })).status).toBe(503)
  },
  'a status that is not listed is not retried': async (run) => {
    expect((await run.send(8080, { path: '/flaky?status=500&key=other' })).status).toBe(500)
    expect(run.upstream('app').requests.filter((request) => request.path.includes('key=other')).length).toBe(1)
  },
  'an attempt that times out is retried, and the last timeout is returned as 504': async (run) => {
    const response = await run.send(8080, { path: '/flaky?delay=20000&key=late' })
    expect([response.status, response.body]).toEqual([504, 'upstream call timeout'])
    expect(run.upstream('app').requests.filter((request) => request.path.includes('key=late')).length).toBe(3)
  },
})
