import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'the service decides, its answer is kept, and the user of the client is replaced': async (run) => {
    const asked = async (): Promise<number> => {
      const metrics = await run.dataplane.metrics()
      return Number(/^proxy_plugin_events_total\{[^}]*event="asked"[^}]*\} (\d+)/m.exec(metrics)?.[1] ?? 0)
    }
    const send = (authorization: string) => run.send(8080, { headers: { authorization, 'x-user': 'forged' } })
    const before = run.upstream('app').requests.length
    expect((await send('Bearer wrong')).status).toBe(403)
    expect(run.upstream('app').requests.length).toBe(before)
    await send('Bearer demo-key-ann')
    const count = await asked()
    const { status, headers } = await send('Bearer demo-key-ann').then((response) => ({ status: response.status, headers: response.json().headers }))
    expect([status, headers['x-user']]).toEqual([200, 'ann'])
    expect(await asked()).toBe(count)
  },
})
