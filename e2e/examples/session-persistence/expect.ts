import { expect } from '@jest/globals'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

const nameOf = async (run: ExampleRun, cookie: string): Promise<string> => ((await run.send(8080, { headers: { cookie } })).json() as { name: string }).name

export default expectations({
  'clients are spread over the endpoints, and each stays with its own': async (run) => {
    const names = new Set<string>()
    for (let i = 0; i < 24; i++) {
      const first = await run.send(8080)
      const cookie = String(first.headers['set-cookie']).split(';')[0] ?? ''
      const { name } = first.json() as { name: string }
      names.add(name)
      expect(await nameOf(run, `a=b; ${cookie}`)).toBe(name)
    }
    expect(names).toEqual(new Set(['one', 'two', 'three']))
  },
  'a forged cookie selects no endpoint': async (run) => {
    const response = await run.send(8080, { headers: { cookie: 'cart=MTI3LjAuMC4xOjkwMDE=' } })
    expect(response.status).toBe(200)
    expect(String(response.headers['set-cookie'])).toMatch(/^cart=/)
  },
})
