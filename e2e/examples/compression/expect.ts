import { gzipSync } from 'node:zlib'
import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'browsers decode each coding': async (run) => {
    for (const coding of ['br', 'zstd', 'gzip']) {
      // fetch decodes as browsers do.
      const response = await fetch(`http://127.0.0.1:${run.port(8080)}/?size=100000&header=content-type:text/html`, { headers: { 'accept-encoding': coding } })
      expect([response.headers.get('content-encoding'), (await response.arrayBuffer()).byteLength]).toEqual([coding, 100_000])
    }
  },
  'an event is not delayed by its coding': async (run) => {
    const response = await fetch(`http://127.0.0.1:${run.port(8080)}/?events=2&interval=1500`, { headers: { 'accept-encoding': 'gzip' } })
    expect(response.headers.get('content-encoding')).toBe('gzip')
    const reader = response.body?.getReader()
    const start = performance.now()
    const first = await reader?.read()
    expect(new TextDecoder().decode(first?.value)).toContain('data:')
    expect(performance.now() - start).toBeLessThan(1400)
    await reader?.cancel()
  },
  'HTTP/2 clients receive compressed responses': async (run) => {
    const { headers, body } = await run.send(8080, {
      protocol: 'http2',
      path: '/?size=5000&header=content-type:text/html',
      headers: { 'accept-encoding': 'gzip' },
    })
    expect(headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' })
    expect(body.length).toBeLessThan(1000)
  },
  'a body that is longer than maxSize gets 413, one that is no gzip 400': async (run) => {
    const post = async (body: Buffer) => (await run.send(8080, { method: 'POST', headers: { 'content-encoding': 'gzip' }, body })).status
    expect(await post(gzipSync(Buffer.alloc(900_000, 'a')))).toBe(200)
    expect(await post(gzipSync(Buffer.alloc(1_200_000, 'a')))).toBe(413)
    expect(await post(Buffer.from('no gzip'))).toBe(400)
  },
})
