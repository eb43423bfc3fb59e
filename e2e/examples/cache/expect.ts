import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

const fresh = 'header=cache-control:max-age=60'

export default expectations({
  'a response with a lifetime is returned again, without a request to the upstream': async (run) => {
    const { requests } = run.upstream('app')
    const request = { path: `/news?${fresh}` }
    const first = await run.send(8080, request)
    const before = requests.length
    const second = await run.send(8080, request)
    expect([second.status, second.body, requests.length]).toEqual([200, first.body, before])
    expect(second.headers).toMatchObject({ age: expect.stringMatching(/^\d+$/), 'cache-status': expect.stringMatching(/^proxy; hit; ttl=\d+$/) })
  },
  'a POST drops the stored response of its URI': async (run) => {
    const path = `/orders?${fresh}`
    await run.send(8080, { path })
    await run.send(8080, { path, method: 'POST', body: 'x' })
    expect((await run.send(8080, { path })).headers['cache-status']).toBe('proxy; fwd=uri-miss')
  },
  'private responses and other teams are separate': async (run) => {
    const status = async (path: string, team?: string): Promise<unknown> =>
      (await run.send(8080, { path, headers: team === undefined ? {} : { 'x-team': team } })).headers['cache-status']
    for (const path of ['/me?header=cache-control:private', '/plain'])
      expect([await status(path), await status(path)]).toEqual(Array(2).fill('proxy; fwd=uri-miss'))
    const report = `/reports/1?${fresh}`
    expect([await status(report, 'red'), await status(report, 'blue'), await status(report)]).toEqual([
      'proxy; fwd=uri-miss',
      'proxy; fwd=uri-miss',
      'proxy; fwd=bypass',
    ])
    expect(await status(report, 'red')).toMatch(/^proxy; hit/)
  },
})
