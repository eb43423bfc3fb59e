import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { runClusterMode, type ClusterMode } from './cluster.ts'
import { collections, startFakeApi, type FakeApi } from '../kube/testing.ts'
import { createLog } from '../runtime/log.ts'
import { readSettings } from './settings.ts'
import { NO_SAMPLES } from '#api/rollout/samples.ts'
import { compose } from '../../dataplane/request/exchange/compose.ts'
import { HeaderList } from '../../dataplane/http/headers.ts'
import { compileBudgets } from '../../dataplane/policy/budgets/index.ts'
import { createPolicyState } from '../../dataplane/policy/state.ts'
import { createConfigStore } from '../../dataplane/config/store.ts'
import { startConfigStream } from '../../dataplane/config/stream/stream.ts'
import { ShareKeeper } from '../../dataplane/program/quota/keeper.ts'
import { QuotaStream } from '../../dataplane/program/quota/stream.ts'
import { testExchange } from '../../dataplane/testing/exchange.ts'
import { until as untilTrue } from '../../e2e/harness/wait.ts'

const { leases, gatewayClasses, gateways, httpRoutes, services, namespaces, proxyBackends, proxyPolicies, deployments, secrets, events: stored } = collections
const OWNED = [deployments, secrets, stored, collections.configMaps, collections.serviceAccounts, collections.podDisruptionBudgets]

let api: FakeApi
let mode: ClusterMode | undefined
const lines: string[] = []
const until = (isDone: () => boolean | Promise<boolean>): Promise<void> => untilTrue(isDone, () => lines.join(''))

beforeEach(async () => {
  api = await startFakeApi({ install: [leases, gatewayClasses, gateways, httpRoutes, services, namespaces, proxyBackends, proxyPolicies, ...OWNED] })
  api.put(namespaces, { metadata: { name: 'default' } })
})
afterEach(async () => {
  await mode?.close()
  await api.close()
})

/** A replica of the operator. */
function start(name = 'pod'): Promise<ClusterMode> {
  const free = { PROXY_XDS_SERVICE_PORT: '0', PROXY_HEALTH_PORT: '0', PROXY_METRICS_PORT: '0', PROXY_ADMIN_PORT: '0' }
  return runClusterMode({
    settings: readSettings({ ...free, POD_NAME: name, PROXY_XDS_AUTH: 'false' }),
    log: createLog('debug', (line) => lines.push(line)),
    connection: { ...api.connection, close: () => {} },
    host: '127.0.0.1',
    leaseTimes: { leaseMs: 60_000, renewMs: 40_000, retryMs: 100 },
  })
}

test('a budget of all replicas that reaches a percentage is an Event of its policy', async () => {
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'gw' }]
  const budget = { name: 'team', scope: 'Gateway' as const, alertAt: [50, 80], limits: [{ requests: 10, window: 'Month' }] }
  api.put(gateways, {
    metadata: { name: 'gw', namespace: 'default' },
    spec: { gatewayClassName: 'proxy', listeners: [{ name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'Same' } } }] },
  })
  api.put(proxyPolicies, { metadata: { name: 'p', namespace: 'default' }, spec: { targetRefs, traffic: { budgets: [budget] } } })
  mode = await start()
  const epochMs = Date.now()
  const keeper: ShareKeeper = new ShareKeeper({ onUrgent: () => stream.hurry(), epochMs: () => epochMs })
  const stream = new QuotaStream({
    address: `http://127.0.0.1:${mode.ports.xds}`,
    node: { namespace: 'default', gateway: 'gw' },
    keeper,
    onConnected: () => undefined,
    onDisconnected: () => undefined,
  })
  const policy = compileBudgets([{ policy: 'default/p', budgets: [budget] }], createPolicyState({ shares: keeper, epochMs: () => epochMs }))
  const send = async (): Promise<number | undefined> => {
    const exchange = testExchange({})
    await compose([policy], () => {
      exchange.response = { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
    })(exchange)
    return exchange.response?.status
  }
  try {
    await until(async () => (await send()) === 200)
    for (let sent = 1; sent < 5; sent++) await until(async () => (await send()) === 200)
    const events = () => api.list(stored).filter(({ reason }) => reason === 'BudgetAlert')
    await until(() => events().length === 1)
    expect(events()[0]).toMatchObject({
      type: 'Warning',
      message: 'budget "team" has reached 50 % of 10 requests per Month for a key at Gateway default/gw [PX4021]',
      involvedObject: { kind: 'ProxyPolicy', namespace: 'default', name: 'p' },
    })
    for (let sent = 5; sent < 10; sent++) await until(async () => (await send()) === 200)
    await until(() => events().length === 2)
    expect(events().map(({ message }) => /\d+ %/.exec(String(message))?.[0])).toEqual(['50 %', '80 %'])
  } finally {
    await stream.close()
  }
})

test('a rollout moves on by what data planes report, all replicas of the operator serve its step, and Events name it', async () => {
  const ref = { group: 'proxy.dev', kind: 'ProxyBackend', name: 'models' }
  api.put(gateways, {
    metadata: { name: 'gw', namespace: 'default' },
    spec: { gatewayClassName: 'proxy', listeners: [{ name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'Same' } } }] },
  })
  api.put(httpRoutes, { metadata: { name: 'r', namespace: 'default' }, spec: { parentRefs: [{ name: 'gw' }], rules: [{ backendRefs: [ref] }] } })
  api.put(proxyBackends, { metadata: { name: 'openai', namespace: 'default' }, spec: { ai: { provider: { openai: {} } } } })
  const to = ['old', 'new'].map((model) => ({ backendRef: { name: 'openai' }, model }))
  const rollout = { steps: [5, 50], every: '1s', minSamples: 10, abortIf: 'errorRate > 0.2' }
  api.put(proxyBackends, { metadata: { name: 'models', namespace: 'default' }, spec: { ai: { models: [{ name: 'assistant', rules: [{ to, rollout }] }] } } })
  const replicas = [await start('a'), await start('b')]
  const dataplanes = replicas.map(({ ports }) => {
    const store = createConfigStore()
    const state = () => store.snapshot().backends.get('default/models')?.rollouts?.[0]
    return { state, stream: startConfigStream({ address: `http://127.0.0.1:${ports.xds}`, node: { namespace: 'default', gateway: 'gw' }, store }) }
  })
  /** Each data plane reports for the step that it is at. */
  const report = (attempts: number, errors: number): void => {
    for (const { state, stream } of dataplanes) {
      const { id = '', step = 0 } = state() ?? {}
      const target = { ...NO_SAMPLES, attempts, errors }
      stream.reportFindings({
        plugins: [],
        heldTools: [],
        rollouts: [{ backend: 'default/models', model: 'assistant', rule: 0, id, step, target, baseline: NO_SAMPLES }],
      })
    }
  }
  const all = (step: number, weight: number): boolean => dataplanes.every(({ state }) => state()?.step === step && state()?.weight === weight)
  const events = (reason: string) => api.list(stored).filter((event) => event['reason'] === reason)
  try {
    await until(() => all(0, 5))
    await until(() => {
      report(20, 0)
      return all(1, 50)
    })
    await until(() => {
      report(20, 10)
      return all(1, 0)
    })
    const status = (): Readonly<Record<string, unknown>> => ({ ...api.get(proxyBackends, 'default', 'models')?.status })
    await until(() => JSON.stringify(status()['rollouts'] ?? []).includes('"Aborted"'))
    expect(status()['rollouts']).toMatchObject([
      { model: 'assistant', rule: 0, phase: 'Aborted', step: 1, weight: 0, message: expect.stringContaining('errorRate 0.5') },
    ])
    await until(() => events('RolloutAborted').length === 1)
    expect(events('RolloutAborted')[0]).toMatchObject({ type: 'Warning', involvedObject: { kind: 'ProxyBackend', name: 'models' } })
  } finally {
    for (const { stream } of dataplanes) await stream.close()
    for (const replica of replicas) await replica.close()
  }
})
