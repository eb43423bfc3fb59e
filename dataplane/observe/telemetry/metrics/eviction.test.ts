import { expect, test } from '@jest/globals'
import { createEvictionReport } from './eviction.ts'
import { createRegistry } from './registry.ts'

test('an eviction is logged, counted, and shown while it lasts', () => {
  const registry = createRegistry()
  const lines: unknown[] = []
  const log = (level: string) => (message: string, fields?: object) => void lines.push([level, message, fields])
  const logger = { error: log('error'), warn: log('warn'), info: log('info'), debug: log('debug'), trace: log('trace'), isEnabled: () => true }
  const report = createEvictionReport(logger, registry)
  const shown = () => [...registry.expose('text')].join('').match(/^proxy_upstream_evict.*$/gm)

  report('ns/api:80', { kind: 'evicted', endpoint: '10.0.0.1:80', durationMs: 3000.4, health: 0.7 })
  expect(shown()).toEqual(['proxy_upstream_evictions_total{backend="ns/api:80"} 1', 'proxy_upstream_evicted_endpoints{backend="ns/api:80"} 1'])
  report('ns/api:80', { kind: 'back', endpoint: '10.0.0.1:80', durationMs: 0, health: 0.5 })
  expect(shown()).toEqual(['proxy_upstream_evictions_total{backend="ns/api:80"} 1', 'proxy_upstream_evicted_endpoints{backend="ns/api:80"} 0'])
  expect(lines).toEqual([
    ['warn', 'endpoint evicted', { code: 'PX4010', backend: 'ns/api:80', endpoint: '10.0.0.1:80', health: 0.7, durationMs: 3000 }],
    ['info', 'endpoint is back', { backend: 'ns/api:80', endpoint: '10.0.0.1:80', health: 0.5 }],
  ])
})

test('failing checks are logged with their cause, and shown until they pass or end', () => {
  const registry = createRegistry()
  const lines: unknown[] = []
  const log = (level: string) => (message: string, fields?: object) => void lines.push([level, message, fields])
  const logger = { error: log('error'), warn: log('warn'), info: log('info'), debug: log('debug'), trace: log('trace'), isEnabled: () => true }
  const report = createEvictionReport(logger, registry)
  const shown = () => [...registry.expose('text')].join('').match(/^proxy_upstream_failing_endpoints.*$/gm)
  const event = { endpoint: '10.0.0.1:80', durationMs: 0, health: 0 }
  const where = { backend: 'ns/api:80', endpoint: '10.0.0.1:80' }

  report('ns/api:80', { ...event, kind: 'down', error: 'status 503' })
  report('ns/api:80', { ...event, kind: 'down', error: 'status 500' })
  expect(shown()).toEqual(['proxy_upstream_failing_endpoints{backend="ns/api:80"} 2'])
  report('ns/api:80', { ...event, kind: 'up' })
  report('ns/api:80', { ...event, kind: 'unchecked' })
  expect(shown()).toEqual(['proxy_upstream_failing_endpoints{backend="ns/api:80"} 0'])
  expect(lines).toEqual([
    ['warn', 'endpoint fails its health checks', { code: 'PX4010', ...where, error: 'status 503' }],
    ['warn', 'endpoint fails its health checks', { code: 'PX4010', ...where, error: 'status 500' }],
    ['info', 'endpoint passes its health checks', where],
    ['info', 'endpoint is no longer checked', where],
  ])
})
