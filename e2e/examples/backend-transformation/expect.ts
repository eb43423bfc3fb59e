import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'each backend receives its own transformation': async (run) => {
    const seen = new Map<string, unknown>()
    while (seen.size < 2) {
      const response = await run.send(8080, { method: 'POST', path: '/items?x=1', body: '{"a":1}' })
      const { name, path, body, headers } = response.json()
      seen.set(name, [path, JSON.parse(body), headers['x-dialect'], response.headers['x-dialect']])
    }
    expect(seen.get('old')).toEqual(['/v1/items?x=1', { request: { a: 1 } }, 'old', 'translated'])
    expect(seen.get('new')).toEqual(['/items?x=1', { a: 1 }, undefined, undefined])
  },
})
