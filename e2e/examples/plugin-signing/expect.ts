import { createHash, createHmac } from 'node:crypto'
import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'the signature covers method, path, time and body, and a signature of the client is replaced': async (run) => {
    for (const [method, path, body] of [
      ['POST', '/orders?id=1&b=%20', '{"amount":1}'],
      ['GET', '/', ''],
    ] as const) {
      const { status } = await run.send(8080, { method, path, headers: { 'x-signature': 'forged' }, ...(body === '' ? {} : { body }) })
      expect(status).toBe(200)
      const [received] = run.upstream('app').requests.slice(-1)
      expect(received).toMatchObject({ method, path, body })
      const [, time = '', signature] = /^time=(\d+), sha256=([0-9a-f]+)$/.exec(String(received?.headers['x-signature'])) ?? []
      expect(Math.abs(Date.now() / 1000 - Number(time))).toBeLessThan(60)
      const digest = createHash('sha256').update(body).digest('hex')
      expect(signature).toBe(createHmac('sha256', 'demo-key-of-the-partner').update([method, path, time, digest].join('\n')).digest('hex'))
    }
  },
})
