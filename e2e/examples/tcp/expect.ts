import { expect } from '@jest/globals'
import { sendRaw } from '../../harness/client.ts'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'bytes pass unchanged, and half-closing the connection does not cut the response': async (run) => {
    expect(await sendRaw(run.port(8090), 'GET / HTTP/1.1\r\n\r\n', { end: true })).toBe('primary\nGET / HTTP/1.1\r\n\r\n')
  },
  'a destination of weight 0 is never chosen': async (run) => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => sendRaw(run.port(8090), 'x', { end: true })))
    expect(new Set(answers)).toEqual(new Set(['primary\nx']))
  },
})
