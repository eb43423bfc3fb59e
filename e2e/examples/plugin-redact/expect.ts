import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'card numbers are replaced, and the length of the body is that of the new body': async (run) => {
    await run.send(8080, { method: 'POST', body: 'a 4111111111111111 b' })
    const [request] = run.upstream('app').requests.slice(-1)
    expect(request).toMatchObject({ body: 'a ************1111 b' })
  },
  'requests without a body pass': async (run) => {
    expect((await run.send(8080)).status).toBe(200)
  },
})
