import { expect, test } from '@jest/globals'
import { createReconcileMetrics, renderGauges, renderProcess } from './metrics.ts'

test('a value has help, type and name', () => {
  expect(renderGauges([['leader', 'gauge', 'Whether this replica writes', 1]])).toBe(
    '# HELP proxy_leader Whether this replica writes\n# TYPE proxy_leader gauge\nproxy_leader 1\n',
  )
})

test('reconciles are counted by object and outcome, timed, and forgotten with their object', async () => {
  let time = 0
  const all = createReconcileMetrics(() => time)
  const metrics = all.of('gateway')
  const take = (ms: number) => async () => {
    time += ms
    expect(all.render()).toContain('proxy_controller_reconciliations_running{controller="gateway"} 1\n')
  }
  await metrics.measure('apps', 'gw', take(3))
  await metrics.measure('apps', 'gw', take(2000))
  await expect(metrics.measure('apps', 'other', () => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
  const lines = all.render().split('\n')
  for (const line of [
    'proxy_controller_reconciliations_total{controller="gateway",name="gw",namespace="apps",result="success"} 2',
    'proxy_controller_reconciliations_total{controller="gateway",name="gw",namespace="apps",result="error"} 0',
    'proxy_controller_reconciliations_total{controller="gateway",name="other",namespace="apps",result="error"} 1',
    'proxy_controller_reconcile_duration_seconds_bucket{controller="gateway",le="0.0025"} 1',
    'proxy_controller_reconcile_duration_seconds_bucket{controller="gateway",le="0.005"} 2',
    'proxy_controller_reconcile_duration_seconds_bucket{controller="gateway",le="1"} 2',
    'proxy_controller_reconcile_duration_seconds_bucket{controller="gateway",le="+Inf"} 3',
    'proxy_controller_reconcile_duration_seconds_sum{controller="gateway"} 2.003',
    'proxy_controller_reconcile_duration_seconds_count{controller="gateway"} 3',
    'proxy_controller_reconciliations_running{controller="gateway"} 0',
  ])
    expect(lines).toContain(line)
  metrics.retain((key) => key !== 'apps/gw')
  expect(all.render()).not.toContain('name="gw"')
  expect(all.render()).toContain('name="other"')
})

test('each controller has its own series under one header', async () => {
  const all = createReconcileMetrics(() => 0)
  await all.of('gateway').measure('apps', 'gw', async () => {})
  await all.of('gatewayclass').measure('', 'proxy', async () => {})
  const text = all.render()
  expect(text).toContain('proxy_controller_reconciliations_total{controller="gatewayclass",name="proxy",namespace="",result="success"} 1\n')
  expect(text).toContain('proxy_controller_reconcile_duration_seconds_count{controller="gatewayclass"} 1\n')
  expect(text.match(/^# TYPE /gm)).toHaveLength(3)
})

test('metrics of the process have the names of Prometheus client libraries', () => {
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(renderProcess())?.[1])
  expect(value('process_resident_memory_bytes')).toBeGreaterThan(1e6)
  expect(value('process_cpu_seconds_total')).toBeGreaterThan(0)
  expect(value('process_start_time_seconds')).toBeLessThanOrEqual(Date.now() / 1000)
})
