import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

const tester = { 'x-version': 'canary', 'x-user': 'bob' }

export default expectations({
  'testers get the canary with path, query and headers, and all others the app': async (run) => {
    expect((await run.send(8080, { path: '/a%20b?c=1', headers: { ...tester, 'x-other': 'o' } })).json()).toMatchObject({
      name: 'canary',
      path: '/a%20b?c=1',
      headers: { 'x-other': 'o' },
    })
    const headers = [{ 'x-user': 'bob' }, { 'x-version': 'canary' }, { 'x-version': 'canary', 'x-user': 'eve' }]
    for (const each of headers) expect((await run.send(8080, { headers: each })).json().name).toBe('app')
    expect((await run.send(8080, { method: 'POST', body: 'b', headers: tester })).json()).toMatchObject({ name: 'app', body: 'b' })
  },
  'a request that the canary fails is served by the app': async (run) => {
    // Both respond with this status: the response tells which one was the last.
    const before = run.upstream('canary').requests.length
    const { status, body } = await run.send(8080, { path: '/?status=503', headers: tester })
    expect([run.upstream('canary').requests.length, status]).toEqual([before + 1, 503])
    expect(JSON.parse(body)).toMatchObject({ name: 'app' })
  },
})
