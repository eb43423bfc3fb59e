import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { runClusterMode, type ClusterMode } from './cluster.ts'
import { collections, startFakeApi, type FakeApi } from '../kube/testing.ts'
import { createLog } from '../runtime/log.ts'
import { readSettings } from './settings.ts'
import { compose } from '../../dataplane/request/exchange/compose.ts'
import { HeaderList } from '../../dataplane/http/headers.ts'
import { compileBudgets } from '../../dataplane/policy/budgets/index.ts'
import { createPolicyState } from '../../dataplane/policy/state.ts'
import { ShareKeeper } from '../../dataplane/program/quota/keeper.ts'
import { QuotaStream } from '../../dataplane/program/quota/stream.ts'
import { testExchange } from '../../dataplane/testing/exchange.ts'
import { until as untilTrue } from '../../e2e/harness/wait.ts'

const { leases, gatewayClasses, gateways, httpRoutes, services, namespaces, proxyPolicies, deployments, secrets, events: stored } = collections
const OWNED = [deployments, secrets, stored, collections.configMaps, collections.serviceAccounts, collections.podDisruptionBudgets]

let api: FakeApi
let mode: ClusterMode | undefined
const lines: string[] = []
const until = (isDone: () => boolean | Promise<boolean>): Promise<void> => untilTrue(isDone, () => lines.join(''))

beforeEach(async () => {
  api = await startFakeApi({ install: [leases, gatewayClasses, gateways, httpRoutes, services, namespaces, proxyPolicies, ...OWNED] })
  api.put(namespaces, { metadata: { name: 'default' } })
})
afterEach(async () => {
  await mode?.close()
  await api.close()
})

test('a budget of all replicas that reaches a percentage is an Event of its policy', async () => {
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'gw' }]
  const budget = { name: 'team', scope: 'Gateway' as const, alertAt: [50, 80], limits: [{ requests: 10, window: 'Month' }] }
  api.put(gateways, {
    metadata: { name: 'gw', namespace: 'default' },
    spec: { gatewayClassName: 'proxy', listeners: [{ name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'Same' } } }] },
  })
  api.put(proxyPolicies, { metadata: { name: 'p', namespace: 'default' }, spec: { targetRefs, traffic: { budgets: [budget] } } })
  const free = { PROXY_XDS_SERVICE_PORT: '0', PROXY_HEALTH_PORT: '0', PROXY_METRICS_PORT: '0', PROXY_ADMIN_PORT: '0' }
  mode = await runClusterMode({
    settings: readSettings({ ...free, POD_NAME: 'pod', PROXY_XDS_AUTH: 'false' }),
    log: createLog('debug', (line) => lines.push(line)),
    connection: { ...api.connection, close: () => {} },
    host: '127.0.0.1',
    leaseTimes: { leaseMs: 60_000, renewMs: 40_000, retryMs: 100 },
  })
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
