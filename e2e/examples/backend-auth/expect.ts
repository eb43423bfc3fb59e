import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'passthrough sends the credential of the client to the backend': async (run) => {
    const { headers } = (await run.send(8080, { path: '/same', headers: { authorization: 'Bearer key-of-ann' } })).json()
    expect(headers['authorization']).toBe('Bearer key-of-ann')
  },
  'a client cannot set the credential that the backend receives': async (run) => {
    const lines = ['Bearer key-of-ann', 'Basic c211Z2dsZWQ6eA==']
    const { headers } = (await run.send(8080, { path: '/api', headers: { authorization: lines } })).json()
    expect(headers['authorization']).toBe('Bearer of-the-gateway')
  },
})
