import { expect } from '@jest/globals'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

const nameOf = async (run: ExampleRun, cookie: string): Promise<string> => ((await run.send(8080, { headers: { cookie } })).json() as { name: string }).name

export default expectations({
  'cookies are spread over the endpoints, and each stays': async (run) => {
    const names = new Map<string, string>()
    for (let i = 0; i < 24; i++) names.set(`cart=${i}`, await nameOf(run, `cart=${i}`))
    expect(new Set(names.values())).toEqual(new Set(['one', 'two', 'three']))
    for (const [cookie, name] of names) expect(await nameOf(run, `a=b; ${cookie}; c=d`)).toBe(name)
  },
  'the first response sets the cookie of the endpoint that it came from': async (run) => {
    const first = await run.send(8080)
    const cookie = String(first.headers['set-cookie']).split(';')[0] ?? ''
    for (let i = 0; i < 4; i++) expect(await nameOf(run, cookie)).toBe((first.json() as { name: string }).name)
  },
})
