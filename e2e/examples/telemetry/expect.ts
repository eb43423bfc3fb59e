import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'
import { waitUntil } from '../../harness/wait.ts'

export default expectations({
  'the access log has the added fields, lacks the removed fields and omits health checks': async (run) => {
    await run.send(8080, { path: '/healthz' })
    await run.send(8080, { path: '/shop/2', headers: { 'x-user': 'bob' } })
    const line = await run.dataplane.program.waitForLine(/http\.path=\/shop\/2/)
    expect(line).toMatch(/trace\.id=[0-9a-f]{32} span\.id=[0-9a-f]{16}.* user=bob$/)
    expect(line).not.toContain('http.version')
    expect(run.dataplane.program.lines.some(({ text }) => text.includes('/healthz'))).toBe(false)
  },
  'log records and spans reach the collector': async (run) => {
    await run.send(8080, { path: '/shop/3' })
    const paths = (): Set<string> => new Set(run.upstream('collector').requests.map(({ path }) => path))
    await waitUntil('both', () => paths().has('/v1/logs') && paths().has('/v1/traces'))
  },
  'a trace that the client started is always continued': async (run) => {
    const traceId = '0af7651916cd43dd8448eb211c80319c'
    const response = await run.send(8080, { path: '/shop/4', headers: { traceparent: `00-${traceId}-b7ad6b7169203331-01` } })
    expect(response.body).toContain(`00-${traceId}-`)
  },
})
