import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'requests without Sec-Fetch-Site are checked by Origin': async (run) => {
    const statusOf = async (origin: string) => (await run.send(8080, { method: 'POST', host: 'shop.example.com', headers: { origin } })).status
    expect(await statusOf('http://shop.example.com')).toBe(200)
    expect(await statusOf('https://forms.example.com')).toBe(200)
    expect(await statusOf('https://evil.example.com')).toBe(403)
  },
  'safe methods and requests of other clients than browsers pass': async (run) => {
    expect((await run.send(8080, { headers: { 'sec-fetch-site': 'cross-site' } })).status).toBe(200)
    expect((await run.send(8080, { method: 'POST' })).status).toBe(200)
  },
  'a rejected request does not reach the upstream': async (run) => {
    const before = run.upstream('app').requests.length
    await run.send(8080, { method: 'DELETE', headers: { 'sec-fetch-site': 'same-site' } })
    expect(run.upstream('app').requests.length).toBe(before)
  },
})
