import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'mode None keeps the Host of the client': async (run) => {
    expect((await run.send(8080, { path: '/external/none', host: 'shop.example.com' })).json().host).toBe('shop.example.com')
  },
  'mode Auto sends the cluster name of a Service as Host': async (run) => {
    expect((await run.send(8080, { path: '/service/auto', host: 'shop.example.com' })).json().host).toMatch(/^app\.[a-z-]+\.svc\.cluster\.local$/)
  },
})
