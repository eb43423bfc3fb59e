import { expect, test } from '@jest/globals'
import { parseExposition } from '../../../testing/exposition.ts'
import { testExchange } from '../../../testing/exchange.ts'
import { ROUTE_LABELS, defineMetrics, routeValues } from './area.ts'
import { beginCall } from './call.ts'
import { createRegistry, type Registry } from './registry.ts'
import { recordClientSpan, startTrace } from '../trace.ts'

const read = (registry: Registry) => parseExposition([...registry.expose('text')].join(''), 'text')

const area = defineMetrics((registry) => {
  const family = registry.counter('proxy_area_total', 'Test.', ['kind', ...ROUTE_LABELS])
  return { count: (kind: string, exchange: ReturnType<typeof testExchange>) => family.series(kind, ...routeValues(exchange)).value++ }
})

test('metrics of a module are created on first use, once per registry', () => {
  const [one, two] = [createRegistry(), createRegistry()]
  expect([...one.expose('text')].join('')).toBe('')
  area(one).count('a', testExchange())
  area(one).count('a', testExchange())
  area(two).count('a', testExchange())
  expect(read(one).value('proxy_area_total', { kind: 'a', route: 'unknown' })).toBe(2)
  expect(read(two).value('proxy_area_total', { kind: 'a' })).toBe(1)
})

test('series of deleted routes are removed from every family with the label', () => {
  const registry = createRegistry()
  const exchange = testExchange()
  exchange.labels = { gateway: 'ns/gw', listener: 'http', route: 'ns/gone', rule: '' }
  area(registry).count('a', exchange)
  registry.counter('proxy_without_total', 'Test.', ['kind']).series('x').value = 3
  registry.drop('route', (route) => route === 'ns/gone')
  expect([...registry.expose('text')].join('')).not.toContain('ns/gone')
  expect(read(registry).value('proxy_without_total', { kind: 'x' })).toBe(3)
})

test('an outbound call is measured, and becomes a client span of a sampled trace', () => {
  const registry = createRegistry()
  const exchange = testExchange()
  expect(beginCall(registry, exchange, 'Policy', 'ExtAuthz').traceparent).toBeUndefined()
  const trace = startTrace(exchange, undefined)
  const call = beginCall(registry, exchange, 'Policy', 'ExtAuthz', { host: 'auth:9000' })
  expect(call.traceparent).toBe(`00-${trace.traceId}-${trace.spanId}-01`)
  call.end({ status: 200 })
  expect(read(registry).value('proxy_upstream_call_duration_seconds_count', { kind: 'Policy', subtype: 'ExtAuthz' })).toBe(1)
  expect(trace.calls).toMatchObject([{ kind: 'Policy', subtype: 'ExtAuthz', host: 'auth:9000', status: 200 }])
})

test('a request records at most 64 spans, and an unsampled one none', () => {
  const span = { kind: 'Policy', subtype: 'RateLimit', startedAtMs: 1, endedAtMs: 2 }
  const exchange = testExchange()
  const trace = startTrace(exchange, undefined)
  for (let i = 0; i < 100; i++) recordClientSpan(exchange, span)
  expect(trace.calls).toHaveLength(64)
  const unsampled = testExchange()
  const context = startTrace(unsampled, { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), flags: 0 })
  recordClientSpan(unsampled, span)
  expect(context.calls).toEqual([])
})
