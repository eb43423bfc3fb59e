import { expect } from '@jest/globals'
import { makeAuthority, makeCertificate } from '../../harness/certificates.ts'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'an HTTP/2 request with a client certificate succeeds': async (run) => {
    const response = await run.send(8443, { protocol: 'http2', host: 'localhost', tls: { ...run.tls('localhost'), ...run.keyPair('client') } })
    expect(response.json()).toMatchObject({ name: 'app', sni: 'app.internal' })
    const { headers } = response.json() as { headers: Record<string, string> }
    expect(headers['x-forwarded-client-cert']).toMatch(/^Hash=[\da-f]{64};Subject="[^"]*CN=client[^"]*";DNS=client\.example\.com$/)
  },
  "another authority's certificate is rejected": async (run) => {
    const stranger = makeCertificate({ name: 'client', hosts: ['client.example.com'], issuer: makeAuthority('example authority') })
    const tls = { ...run.tls('localhost'), cert: stranger.certificate, key: stranger.privateKey }
    const before = run.upstream('app').requests.length
    await expect(run.send(8443, { tls })).rejects.toThrow()
    expect(run.upstream('app').requests.length).toBe(before)
  },
})
