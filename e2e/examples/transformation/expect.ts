import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'a header whose expression fails is removed, so that a client cannot set it': async (run) => {
    expect((await run.send(8080, { headers: { 'x-user': 'root', 'x-debug': '1' } })).json().headers).not.toHaveProperty('x-user')
    expect((await run.send(8080, { headers: { 'x-debug': '1' } })).json().headers).not.toHaveProperty('x-debug')
  },
  'metadata of the request is available in the response': async (run) => {
    const { headers } = await run.send(8080, { host: 'acme.example.com' })
    expect(headers['x-served-for']).toBe('acme')
  },
  'metadata is available in the access log, which omits missing values': async (run) => {
    await run.send(8080, { path: '/logged', host: 'globex.example.com' })
    await run.dataplane.program.waitForLine(/http\.path=\/logged .*tenant=globex/)
    await run.send(8080, { path: '/logged-beta', headers: { cookie: 'tester=ann' } })
    expect(await run.dataplane.program.waitForLine(/http\.path=\/logged-beta/)).not.toContain('tenant=')
  },
  'the new body is computed from the original body': async (run) => {
    const request = (await run.send(8080, { method: 'POST', host: 'acme.example.com', body: '{"text":" hi "}' })).json()
    expect([JSON.parse(request.body), request.bodyBytes]).toEqual([{ tenant: 'acme', input: 'hi' }, Buffer.byteLength(request.body)])
  },
  'transformations apply to HTTP/2 requests': async (run) => {
    const request = (await run.send(8080, { method: 'POST', host: 'acme.example.com', body: '{"text":"hi"}', protocol: 'http2' })).json()
    expect(JSON.parse(request.body)).toEqual({ tenant: 'acme', input: 'hi' })
  },
  'a body whose expression fails is empty': async (run) => {
    expect((await run.send(8080, { method: 'POST', body: 'no JSON' })).json().bodyBytes).toBe(0)
  },
  'a path whose expression fails is unchanged': async (run) => {
    expect((await run.send(8080, { path: '/a' })).json()).toMatchObject({ name: 'stable', path: '/a' })
    expect((await run.send(8080, { path: '/a', headers: { cookie: 'tester=ann' } })).json()).toMatchObject({ name: 'beta', path: '/beta/a?tester=ann' })
  },
  'the status is set by the expression': async (run) => {
    const statuses = []
    for (const status of [200, 404, 503]) statuses.push((await run.send(8080, { path: `/?status=${status}` })).status)
    expect(statuses).toEqual([200, 404, 502])
  },
})
