import { expect, test } from '@jest/globals'
import type { ObjectStatus } from '../model/translation.ts'
import { createServerStatus, type RunningServer } from './servers.ts'

const accepted = { type: 'Accepted', status: 'True', reason: 'Accepted', message: '', observedGeneration: 3 }
const status: ObjectStatus = { group: 'proxy.dev', kind: 'ProxyBackend', namespace: 'default', name: 'tools', status: { conditions: [accepted] } }
const other: ObjectStatus = { ...status, name: 'other' }
const server = (more: Partial<RunningServer> = {}): RunningServer => ({
  target: 'a',
  name: 'mcp-tools-a-1',
  outcome: { ok: true, warnings: [] },
  rollout: { ready: 1, wanted: 1, failures: [] },
  ...more,
})
function readiness(...servers: RunningServer[]): unknown {
  const [result] = createServerStatus()([status], () => servers)
  const { conditions } = (result?.status ?? {}) as {
    conditions: { type: string; status: string; reason: string; message: string; observedGeneration: number }[]
  }
  const { type, status: value, reason, message, observedGeneration } = conditions[1] ?? accepted
  expect([type, observedGeneration]).toEqual(['ServersReady', 3])
  return [value, reason, message]
}

test('servers with a ready pod are ready', () => {
  expect(readiness(server(), server({ target: 'b', rollout: { ready: 1, wanted: 2, failures: ['the rollout is stuck: x'] } }))).toEqual([
    'True',
    'Ready',
    'server of target a: 1 of 1 pods are ready; server of target b: 1 of 2 pods are ready, the rollout is stuck: x',
  ])
})

test('a server without a ready pod is pending, and the message says where its cause is', () => {
  const text = 'kubectl -n default describe pods -l app.kubernetes.io/name=mcp-tools-a-1 shows why [PX1359]'
  expect(readiness(server({ rollout: { ready: 0, wanted: 1, failures: ['the rollout is stuck: x'] } }), server({ target: 'b' }))).toEqual([
    'False',
    'Pending',
    `server of target a is not ready: 0 of 1 pods are ready: the rollout is stuck: x; ${text}`,
  ])
  expect(readiness(server({ rollout: undefined }))).toEqual([
    'False',
    'Pending',
    `server of target a is not ready: its Deployment has not been created yet; ${text}`,
  ])
})

test('a server that cannot be deployed has the reason of its failure', () => {
  const outcome = { ok: false as const, reason: 'DeploymentFailed' as const, message: 'quota [PX1360]', warnings: [] }
  expect(readiness(server({ outcome }))).toEqual(['False', 'DeploymentFailed', 'server of target a: quota [PX1360]'])
})

test('a status without servers, and one whose servers did not change, keeps its identity', () => {
  const add = createServerStatus()
  const servers = [server()]
  const find = (backend: string): readonly RunningServer[] => (backend === 'default/tools' ? servers : [])
  const first = add([status, other], find)
  expect(first[1]).toBe(other)
  expect(add([status, other], find)[0]).toBe(first[0])
  expect(add([status, other], () => [server()])[0]).not.toBe(first[0])
})
