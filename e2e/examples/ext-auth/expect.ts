import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'a denial of the server reaches the client, and the request does not reach the upstream': async (run) => {
    const before = run.upstream('app').requests.length
    const response = await run.send(8080, { path: '/' })
    expect([response.status, response.body, run.upstream('app').requests.length]).toEqual([403, 'who are you?\n', before])
  },
  'headers of the server replace those of the client': async (run) => {
    const response = await run.send(8080, { path: '/', headers: { 'x-user': 'bert', 'x-role': 'admin' } })
    expect([response.status, response.json().headers['x-role']]).toEqual([200, 'reader'])
  },
  'a rule can read the metadata of the server': async (run) => {
    const statusFor = async (user: string) => (await run.send(8080, { path: '/admin', headers: { 'x-user': user } })).status
    expect([await statusFor('anna'), await statusFor('bert')]).toEqual([200, 403])
  },
  'a filter calls its own server over HTTP, with its own path': async (run) => {
    expect((await run.send(8080, { path: '/filter/a?b' })).status).toBe(200)
    expect(run.upstream('login').requests.at(-1)?.path).toBe('/decide/filter/a?b')
  },
})
