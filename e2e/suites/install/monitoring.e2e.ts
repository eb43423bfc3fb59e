import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { isTrueWithin } from '../../harness/wait.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { startPrometheus, type Prometheus } from '../telemetry/prometheus.ts'
import { listSelectors, readRules } from '../telemetry/rules.ts'
import { gatewayPods, installProxy, kubectl, operatorPods, ROOT, startQuickstart } from './cluster.ts'

const NAMESPACE = 'monitoring-e2e'
const directory = mkdtempSync(join(tmpdir(), 'monitoring-'))
let prometheus: Prometheus
let isChanging = true
let changes: Promise<void> | undefined

const dashboard = JSON.parse(readFileSync(join(ROOT, 'charts/proxy/dashboards/operator.json'), 'utf8')) as {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[]
}
const fill = (expr: string): string => expr.replaceAll('$job', '.*').replaceAll('$__rate_interval', '20s')
// The certificate of the config stream is exported with TLS only.
const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.filter(({ expr }) => !expr.includes('proxy_certificate_expiry')).map(({ expr }) => [title, fill(expr)] as const),
)

/** Gives the operator something to do, because rates of what never happens are no numbers. */
async function changeGateway(): Promise<void> {
  for (let round = 0; isChanging; round++) {
    await kubectl('-n', NAMESPACE, 'annotate', 'gateway/web', `example.com/round=${round}`, '--overwrite')
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

beforeAll(async () => {
  await installProxy({ controller: { extraEnv: { PROXY_ENABLE_BUILTIN_DEFAULT_METRICS: true } } })
  await startQuickstart(NAMESPACE)
  const addressOf = (pods: Awaited<ReturnType<typeof operatorPods>>, port: number): string[] =>
    pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined).map(({ status }) => `${status.podIP}:${port}`)
  const targets = [...addressOf(await operatorPods(), 9092), ...addressOf(await gatewayPods(NAMESPACE, 'web'), 15_020)]
  prometheus = await startPrometheus(directory, await findFreePort(), targets)
  changes = changeGateway()
}, 900_000)
afterAll(async () => {
  isChanging = false
  await changes
  await prometheus?.stop()
  rmSync(directory, { recursive: true })
})

test('Prometheus scrapes the operator and the data plane', async () => {
  expect(await isTrueWithin(60_000, async () => (await prometheus.targets()).join() === 'up,up')).toBe(true)
})

test.each(queries)('the dashboard of the operator has data for panel %s: %s', async (_, query) => {
  expect(await isTrueWithin(60_000, async () => (await prometheus.query(query)).some(({ value }) => Number.isFinite(value)))).toBe(true)
})

test.each(readRules('proxy-operator').flatMap(({ alert, expr }) => listSelectors(expr).map((selector) => [selector, alert] as const)))(
  'the operator exports %s, which alert %s selects',
  async (selector) => {
    expect(await isTrueWithin(60_000, async () => (await prometheus.query(selector)).length > 0)).toBe(true)
  },
)

test('no alert fires for a healthy installation', async () => {
  // A single conflict with another writer is an error that only counts if it lasts.
  const rules = readRules().filter(({ expr, for: pending }) => pending === undefined || !expr.includes('increase('))
  for (const { alert, expr } of rules) expect([alert, await prometheus.query(expr)]).toEqual([alert, []])
})
