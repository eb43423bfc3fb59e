import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'mode None leaves the name that the client used': async (run) => {
    expect((await run.send(8080, { path: '/external/none', host: 'shop.example.com' })).json().host).toBe('shop.example.com')
  },
  'mode Auto asks a Service by its cluster name': async (run) => {
    expect((await run.send(8080, { path: '/service/auto', host: 'shop.example.com' })).json().host).toMatch(/^app\.[a-z-]+\.svc\.cluster\.local$/)
  },
})
