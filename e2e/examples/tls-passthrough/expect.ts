import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'the client negotiates HTTP/2 with the upstream': async (run) => {
    const response = await run.send(8443, { protocol: 'http2', host: 'bank.example.com', tls: run.tls('bank.example.com') })
    expect(response.json()).toMatchObject({ name: 'bank', protocol: 'HTTP/2.0' })
  },
  'a server name without a route is rejected': async (run) => {
    await expect(run.send(8443, { tls: run.tls('other.example.com') })).rejects.toThrow()
    await expect(run.send(8443, { tls: run.tls('shop.example.com') })).rejects.toThrow()
  },
  'plain HTTP on the TLS port is rejected': async (run) => {
    await expect(run.send(8443, { host: 'bank.example.com' })).rejects.toThrow()
  },
})
