import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'the forward proxy receives CONNECT for the host, with the credential of the gateway': async (run) => {
    await run.send(8080, { path: '/partner' })
    const asked = run.upstream('egress').requests.find(({ path }) => path === `localhost:${run.port(9001)}`)
    expect(asked).toMatchObject({ method: 'CONNECT', headers: { 'proxy-authorization': 'Bearer egress' } })
  },
  'the backend receives the request over TLS, without the proxy credential': async (run) => {
    const { status } = await run.send(8080, { path: '/partner', method: 'POST', body: 'hello' })
    const got = run.upstream('partner').requests.at(-1)
    expect([status, got?.method, got?.headers['proxy-authorization'], got?.headers['authorization']]).toEqual([200, 'POST', undefined, undefined])
  },
  'one tunnel is used for many requests': async (run) => {
    await run.send(8080, { path: '/partner' })
    const before = run.upstream('egress').requests.length
    for (let nth = 0; nth < 5; nth++) expect((await run.send(8080, { path: '/partner' })).status).toBe(200)
    expect(run.upstream('egress').requests.length).toBe(before)
  },
})
