import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'add keeps the values of the client, and set replaces them': async (run) => {
    const { headers } = (await run.send(8080, { headers: { 'x-tag': 'client', 'x-environment': 'mine', 'x-internal': '1' } })).json()
    expect([headers['x-tag'], headers['x-environment'], headers['x-internal']]).toEqual(['client, gateway', 'staging', undefined])
  },
  'the policy removes headers of the upstream and applies to responses of the gateway': async (run) => {
    expect((await run.send(8080, { path: '/?header=x-powered-by:x' })).headers).not.toHaveProperty('x-powered-by')
  },
  'a filter of the rule replaces the request or response part of the policy': async (run) => {
    const response = await run.send(8080, { path: '/own?header=x-powered-by:x' })
    expect(response.headers).toMatchObject({ 'x-frame-options': 'SAMEORIGIN', 'x-powered-by': 'x' })
    expect(response.json().headers['x-environment']).toBe('staging')
  },
})
