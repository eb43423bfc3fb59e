import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'request headers, response headers and the request body are changed': async (run) => {
    const response = await run.send(8080, { method: 'POST', path: '/', body: 'hello' })
    expect([response.headers['x-processed'], response.json().headers['x-processed'], response.json().body]).toEqual(['yes', 'yes', 'HELLO'])
  },
  'a long body is streamed through the server': async (run) => {
    const response = await run.send(8080, { method: 'POST', path: '/', body: 'x'.repeat(3_000_000) })
    expect(response.json().bodyBytes).toBe(3_000_000)
  },
})
