import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'add keeps the values of the client, and set replaces them': async (run) => {
    const { headers } = (await run.send(8080, { headers: { 'x-tag': 'client', 'x-environment': 'mine', 'x-internal': '1' } })).json()
    expect([headers['x-tag'], headers['x-environment'], headers['x-internal']]).toEqual(['client, gateway', 'staging', undefined])
  },
  "headers of the upstream go, and answers without an upstream have the policy's too": async (run) => {
    expect((await run.send(8080, { path: '/?header=x-powered-by:x' })).headers).not.toHaveProperty('x-powered-by')
  },
  'a filter of the rule replaces the request or response part of the policy': async (run) => {
    const answer = await run.send(8080, { path: '/own?header=x-powered-by:x' })
    expect(answer.headers).toMatchObject({ 'x-frame-options': 'SAMEORIGIN', 'x-powered-by': 'x' })
    expect(answer.json().headers['x-environment']).toBe('staging')
  },
})
