import { describe, expect, test } from '@jest/globals'
import { createMetrics } from '../../observe/telemetry/metrics/metrics.ts'
import { testExchange } from '../../testing/exchange.ts'
import { LiveStats, SAMPLED_FAMILIES } from './live.ts'

const labels = { gateway: 'ns/gw', listener: 'http', route: 'ns/web', rule: '' }

function start() {
  const clock = { ms: 0 }
  const metrics = createMetrics({ version: '1' })
  const live = new LiveStats(
    async (names) => [metrics.registry.dump(false, names)],
    () => clock.ms,
  )
  const record = (status: number, durationMs: number, count = 1, own: typeof labels = labels): void => {
    for (let i = 0; i < count; i++) {
      const exchange = testExchange()
      exchange.labels = own
      exchange.backend = 'ns/web:80'
      exchange.response = { status } as NonNullable<typeof exchange.response>
      exchange.finishedAtMs = exchange.startedAtMs + durationMs
      metrics.recordExchange(exchange)
    }
  }
  const tick = async (): Promise<void> => {
    clock.ms += 10_000
    await live.tick()
  }
  return { clock, live, metrics, record, tick }
}

describe('live numbers', () => {
  test('are requests, errors and percentiles of each node in the last 10 to 20 seconds', async () => {
    const { clock, live, record, tick } = start()
    record(200, 1, 100)
    await tick()
    record(200, 3, 90)
    record(404, 3, 6)
    record(503, 200, 4)
    await tick()
    clock.ms += 5000
    const { rows, windowSeconds } = await live.stats()
    expect(windowSeconds).toBe(15)
    expect(rows.map(({ key }) => key)).toEqual(['total', 'listener ns/gw.http', 'route ns/web', 'backend ns/web:80'])
    for (const row of rows) expect(row).toMatchObject({ requests: 100, clientErrors: 6, serverErrors: 4, requestsPerSecond: 100 / 15 })
    const [{ p50Ms, p95Ms } = {}] = rows
    expect(p50Ms).toBeGreaterThan(1)
    expect(p50Ms).toBeLessThan(5)
    expect(p95Ms).toBeGreaterThan(1)
    expect(p95Ms).toBeLessThan(250)
  })

  test('have a history of 15 minutes in steps of 10 seconds', async () => {
    const { live, record, tick } = start()
    for (let i = 1; i <= 95; i++) {
      record(200, 1, i)
      await tick()
    }
    const { points, stepSeconds } = await live.series('route ns/web')
    expect(stepSeconds).toBe(10)
    expect(points.map(({ requests }) => requests)).toEqual(Array.from({ length: 90 }, (_, index) => index + 6))
    expect((await live.series('route ns/none')).points.every(({ requests }) => requests === 0)).toBe(true)
  })

  test('are not negative when counters disappear with their route', async () => {
    const { live, metrics, record, tick } = start()
    record(200, 1, 10)
    await tick()
    metrics.retainRoutes(() => false)
    record(200, 1, 3)
    await tick()
    expect((await live.series('route ns/web')).points.map(({ requests }) => requests)).toEqual([10, 0])
  })

  test('keep the histories of at most 256 nodes, those with requests first', async () => {
    const { live, record, tick } = start()
    for (let i = 0; i < 300; i++) record(200, 1, 1, { ...labels, listener: `l${i}`, route: `ns/r${i}` })
    await tick()
    const hasHistory = async (key: string): Promise<boolean> => (await live.series(key)).points.some(({ requests }) => requests > 0)
    const nodes = ['total', 'backend ns/web:80', ...Array.from({ length: 300 }, (_, i) => [`route ns/r${i}`, `listener ns/gw.l${i}`]).flat()]
    expect((await Promise.all(nodes.map(hasHistory))).filter(Boolean).length).toBe(256)
    for (let i = 0; i < 90; i++) await tick()
    record(200, 1, 5, { ...labels, listener: 'new', route: 'ns/new' })
    await tick()
    expect(await hasHistory('route ns/new')).toBe(true)
  })

  test('have the requests so far as one point before the first step ends', async () => {
    const { live, record } = start()
    record(200, 1, 7)
    expect((await live.series('total')).points.map(({ requests }) => requests)).toEqual([7])
  })

  test('read only the families that they need', () => {
    const { metrics, record } = start()
    record(200, 1)
    expect(metrics.registry.dump(false, SAMPLED_FAMILIES).map(({ name }) => name)).toEqual(SAMPLED_FAMILIES)
  })
})
