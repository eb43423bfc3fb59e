import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'
import { waitUntil } from '../../harness/wait.ts'

export default expectations({
  'the mirror receives the head of a request without the body': async (run) => {
    const response = await run.send(8080, { path: '/order?id=7', body: 'item=1', headers: { 'x-mark': 'mirrored' } })
    expect(response.json()).toMatchObject({ name: 'primary', body: 'item=1' })
    const find = () => run.upstream('shadow').requests.find((request) => request.headers['x-mark'] === 'mirrored')
    await waitUntil('the mirrored request', () => find() !== undefined)
    expect(find()).toMatchObject({ method: 'POST', path: '/order?id=7', bodyBytes: 0 })
  },
  'a mirror that is down has no effect': async (run) => {
    expect((await run.send(8080, { path: '/down' })).json().name).toBe('primary')
  },
  'zero percent mirrors nothing': async (run) => {
    await run.send(8080, { path: '/never' })
    await run.send(8080, { path: '/after', headers: { 'x-mark': 'after' } })
    await waitUntil('the next mirrored request', () => run.upstream('shadow').requests.some((request) => request.headers['x-mark'] === 'after'))
    expect(run.upstream('shadow').requests.map((request) => request.path)).not.toContain('/never')
  },
})
