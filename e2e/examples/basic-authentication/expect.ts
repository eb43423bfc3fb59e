import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

const basic = (credentials: string) => ({ headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` } })

export default expectations({
  'the upstream never sees the credentials': async (run) => {
    expect((await run.send(8080, basic('bob:open-sesame'))).json().headers['authorization']).toBeUndefined()
  },
  'a wrong password and the password of another user are rejected': async (run) => {
    const before = run.upstream('app').requests.length
    for (const credentials of ['bob:wrong', 'bob:rabbit-hole', 'eve:open-sesame', 'bob:']) {
      const response = await run.send(8080, basic(credentials))
      expect([credentials, response.status, response.body]).toEqual([credentials, 401, 'basic authentication failure: invalid credentials'])
    }
    expect(run.upstream('app').requests.length).toBe(before)
  },
})
