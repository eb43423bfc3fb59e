import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'passthrough shows the backend what the client was let in with': async (run) => {
    const { headers } = (await run.send(8080, { path: '/same', headers: { authorization: 'Bearer key-of-ann' } })).json()
    expect(headers['authorization']).toBe('Bearer key-of-ann')
  },
  'a client cannot choose what the backend sees': async (run) => {
    const lines = ['Bearer key-of-ann', 'Basic c211Z2dsZWQ6eA==']
    const { headers } = (await run.send(8080, { path: '/api', headers: { authorization: lines } })).json()
    expect(headers['authorization']).toBe('Bearer of-the-gateway')
  },
})
