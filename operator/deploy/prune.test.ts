import { expect, test } from '@jest/globals'
import { selectPruned, type LiveObject } from './prune.ts'
import type { DeployGateway, DeployObject } from './types.ts'

const gateway: DeployGateway = { metadata: { name: 'gw', namespace: 'default', uid: 'u1' }, spec: { listeners: [] } }
const owner = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', name: 'gw', uid: 'u1', controller: true }
const live = (kind: string, changes: Partial<LiveObject['metadata']> = {}): LiveObject => ({
  kind,
  metadata: { name: 'gw', namespace: 'default', ownerReferences: [owner], ...changes },
})
const wanted = (kind: string, name: string): DeployObject => ({ apiVersion: '', kind, metadata: { name, namespace: 'default' } })

test.each([
  ['a budget without an overlay', live('PodDisruptionBudget'), true],
  ['an autoscaler without an overlay', live('HorizontalPodAutoscaler'), true],
  ['a Deployment of another name', live('Deployment', { name: 'old' }), false],
  ['a budget that is wanted', live('PodDisruptionBudget', { name: 'wanted' }), false],
  ['a Service', live('Service', { name: 'old' }), false],
  ['a Secret', live('Secret', { name: 'old' }), false],
  ["a user's budget without owner", live('PodDisruptionBudget', { ownerReferences: [] }), false],
  ['a budget of another Gateway', live('PodDisruptionBudget', { ownerReferences: [{ ...owner, name: 'other' }] }), false],
  ['a budget of a deleted Gateway with the same name', live('PodDisruptionBudget', { ownerReferences: [{ ...owner, uid: 'u0' }] }), false],
  ['a budget that the Gateway owns but does not control', live('PodDisruptionBudget', { ownerReferences: [{ ...owner, controller: false }] }), false],
  [
    'a budget that another kind of that name owns',
    live('PodDisruptionBudget', { ownerReferences: [{ ...owner, apiVersion: 'networking.istio.io/v1' }] }),
    false,
  ],
  ['a budget in another namespace', live('PodDisruptionBudget', { namespace: 'other' }), false],
])('%s is deleted or kept', (_, object, isDeleted) => {
  expect(selectPruned(gateway, [wanted('Deployment', 'gw'), wanted('PodDisruptionBudget', 'wanted')], [object])).toEqual(isDeleted ? [object] : [])
})
