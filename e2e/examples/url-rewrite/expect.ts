import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'the prefix and the rest of the path are joined by exactly one slash': async (run) => {
    const paths = []
    for (const path of ['/api', '/api/', '/api/a', '/api/a/b?c=d']) paths.push((await run.send(8080, { path })).json().path)
    expect(paths).toEqual(['/', '/', '/a', '/a/b?c=d'])
  },
  'headers are set and removed before the request reaches the upstream': async (run) => {
    const { headers } = (await run.send(8080, { path: '/api/x', headers: { 'x-debug': '1', 'x-original-prefix': 'forged' } })).json()
    expect([headers['x-original-prefix'], headers['x-debug']]).toEqual(['/api', undefined])
  },
  'a full path replacement keeps the query, and the Host if none is set': async (run) => {
    const { path, host } = (await run.send(8080, { path: '/health/live?v=1', host: 'shop.example.com' })).json()
    expect([path, host]).toEqual(['/status.txt?v=1', 'shop.example.com'])
  },
  'a path without a matching rule gets 404': async (run) => {
    const response = await run.send(8080, { path: '/apiary' })
    expect([response.status, response.body]).toEqual([404, 'route not found'])
  },
})
