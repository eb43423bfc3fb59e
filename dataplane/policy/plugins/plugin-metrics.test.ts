import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { Plugin } from '#gen/config/types.ts'
import { RequestTrace } from '../../request/exchange/trace.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { createPolicyState, type PolicyState } from '../state.ts'
import { endPlugins, retainPlugins } from './host.ts'
import { compilePlugins } from './index.ts'
import { MetricCollector } from './guest/plugin-metrics.ts'

/** More than a slow machine needs to start a thread. */
const SLOW = 60_000
let state: PolicyState | undefined
afterEach(() => {
  if (state !== undefined) endPlugins(state.registry)
})

/** Runs a middleware once as a plugin, and returns the status and the lines of a metric. */
async function run(body: string, metric: string): Promise<{ status: number; lines: string[] }> {
  state = createPolicyState()
  const code = `export default { setup: ({ metrics }) => ({ async request(c, next) {\n${body}\n} }) }`
  const source = { configMapRef: { code, file: 'ns/map/index.ts', owner: 'ns/policy' } }
  const policy = compilePlugins([{ name: 'p', source, limits: { timeout: '50s' } }], 'AfterAuthorization', state)
  if (policy === undefined) throw new Error('there is no policy')
  const { response } = await mountPolicies([policy]).request('http://host/')
  const lines = [...state.registry.expose('text')].join('').split('\n')
  return { status: response.status, lines: lines.filter((line) => line.startsWith(metric)) }
}

test(
  'the version that serves calls is in metrics and traces',
  async () => {
    const { registry } = (state = createPolicyState())
    const use = async (code: string): Promise<{ versions: string[]; traced: unknown[] }> => {
      const plugin: Plugin = { name: 'p', source: { configMapRef: { code, file: 'ns/map/index.ts', owner: 'ns/policy' } }, limits: { timeout: '50s' } }
      const policy = compilePlugins([plugin], 'AfterAuthorization', state as PolicyState)
      const trace = new RequestTrace(0)
      await mountPolicies(policy === undefined ? [] : [policy], { prepare: (exchange) => void (exchange.trace = trace) }).request('http://host/')
      const lines = [...registry.expose('text')].join('').split('\n')
      const traced = trace.steps.filter(({ name }) => name.startsWith('plugin ')).map(({ name, detail }) => [name, detail])
      return { versions: lines.filter((line) => line.startsWith('proxy_plugin_version')), traced }
    }
    for (const text of ['one', 'two']) {
      const code = `export default { setup: () => ({ request: (c) => c.text('${text}') }) }`
      const version = createHash('sha256').update(code).digest('hex').slice(0, 12)
      expect(await use(code)).toEqual({
        versions: [`proxy_plugin_version{plugin="ns/policy/p",version="${version}"} 1`],
        traced: [['plugin ns/policy/p', { version }]],
      })
    }
    retainPlugins(registry, [])
    expect([...registry.expose('text')].join('')).not.toContain('proxy_plugin_version{')
  },
  SLOW,
)

describe('metrics of a plugin', () => {
  test(
    'count events with the name of the plugin before the response is sent',
    async () => {
      const { lines } = await run(
        `metrics.count('denied', { detail: 'eu' }); metrics.count('denied', { detail: 'eu', by: 2 }); await next()`,
        'proxy_plugin_events',
      )
      expect(lines).toEqual(['proxy_plugin_events_total{plugin="ns/policy/p",event="denied",detail="eu"} 3'])
    },
    SLOW,
  )

  test(
    'count events that no message of a call follows',
    async () => {
      const { registry } = (state = createPolicyState())
      const code = `export default { setup: ({ metrics }) => { setTimeout(() => metrics.count('tick'), 1); return { request: (c, next) => next() } } }`
      const source = { configMapRef: { code, file: 'ns/map/index.ts', owner: 'ns/other' } }
      const policy = compilePlugins([{ name: 'p', source, limits: { timeout: '50s' } }], 'AfterAuthorization', state)
      if (policy === undefined) throw new Error('there is no policy')
      expect((await mountPolicies([policy]).request('http://host/')).response.status).toBe(200)
      while (![...registry.expose('text')].join('').includes('event="tick",detail=""} 1')) await sleep(20)
    },
    SLOW,
  )

  test(
    'observe values in a histogram',
    async () => {
      const { lines } = await run(`await next(); metrics.observe('size', 7); metrics.observe('size', 70)`, 'proxy_plugin_values')
      expect(lines).toContain('proxy_plugin_values_bucket{plugin="ns/policy/p",value="size",detail="",le="10"} 1')
      expect(lines).toContain('proxy_plugin_values_sum{plugin="ns/policy/p",value="size",detail=""} 77')
    },
    SLOW,
  )

  test(
    'have at most 200 series, and count further ones as other',
    async () => {
      const { lines } = await run(`for (let i = 0; i < 300; i++) metrics.count('each', { detail: String(i) }); await next()`, 'proxy_plugin_events')
      expect([lines.length, lines.at(-1)]).toEqual([201, 'proxy_plugin_events_total{plugin="ns/policy/p",event="other",detail="other"} 100'])
    },
    SLOW,
  )

  test(
    'with a name that is not valid fail the call',
    async () => {
      expect((await run(`metrics.count('a-b'); await next()`, '-')).status).toBe(500)
    },
    SLOW,
  )
})

describe('MetricCollector', () => {
  test.each([
    ['a name with a line break', () => new MetricCollector(() => undefined).count('a\nb')],
    ['a name of 64 characters', () => new MetricCollector(() => undefined).count('a'.repeat(64))],
    ['a negative count', () => new MetricCollector(() => undefined).count('a', { by: -1 })],
    ['a value that is not finite', () => new MetricCollector(() => undefined).observe('a', Number.NaN)],
  ])('rejects %s', (_, write) => {
    expect(write).toThrow(TypeError)
  })

  test('cuts details to 64 characters, and keeps at most 1,000 samples', () => {
    let first = 0
    const metrics = new MetricCollector(() => first++)
    metrics.count('a', { detail: 'x'.repeat(100) })
    for (let i = 0; i < 2000; i++) metrics.observe('b', i)
    const samples = metrics.take()
    expect([samples.length, samples[0]?.detail.length, first]).toEqual([1000, 64, 1])
    expect(metrics.take()).toEqual([])
  })
})
