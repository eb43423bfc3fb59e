import { expect, test } from '@jest/globals'
import { describeDeployment, type Deployment, type Pod } from './workloads.ts'

const deployment = (status: Deployment['status'], replicas = 1): Deployment => ({ metadata: { name: 'web', namespace: 'shop' }, spec: { replicas }, status })
type State = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number]['state']
const pod = (state: State, ready = false): Pod => ({
  metadata: { name: 'web-1', namespace: 'shop', labels: { 'gateway.networking.k8s.io/gateway-name': 'web' } },
  status: { containerStatuses: [{ name: 'proxy', ready, state }] },
})
const log = 'kubectl -n shop logs web-1 -c proxy'
const refusal = 'pods "web-1" is forbidden: exceeded quota'

test.each<[string, Deployment, readonly Pod[], string, readonly string[]]>([
  ['a Deployment with all pods ready', deployment({ readyReplicas: 1 }), [pod({ running: {} }, true)], 'ok', []],
  ['a Deployment scaled to zero', deployment({}, 0), [], 'ok', []],
  ['a starting pod', deployment({}), [pod({ waiting: { reason: 'ContainerCreating' } })], 'pending', ['0 of 1 pods are ready']],
  [
    'a missing image',
    deployment({}),
    [pod({ waiting: { reason: 'ErrImagePull', message: 'proxy:nope: not found' } })],
    'error',
    ['0 of 1 pods are ready', 'pod web-1: container proxy: ErrImagePull: proxy:nope: not found'],
  ],
  [
    'a process that exits at once',
    deployment({}),
    [pod({ waiting: { reason: 'CrashLoopBackOff', message: 'back-off' } })],
    'error',
    ['0 of 1 pods are ready', `pod web-1: container proxy ends again and again; ${log} --previous says why`],
  ],
  [
    'a pod without config',
    deployment({}),
    [pod({ running: {} })],
    'pending',
    ['0 of 1 pods are ready', `pod web-1: container proxy runs and is not ready; ${log} says why`],
  ],
  [
    'an exhausted quota',
    deployment({ conditions: [{ type: 'ReplicaFailure', status: 'True', message: refusal }] }),
    [],
    'error',
    ['0 of 1 pods are ready', `no pod can be created: ${refusal}`],
  ],
  [
    'a new version that does not start beside the old one',
    deployment({ readyReplicas: 1, conditions: [{ type: 'Progressing', status: 'False', message: 'deadline' }] }),
    [pod({ running: {} }, true)],
    'warning',
    ['the rollout is stuck: deadline'],
  ],
  [
    'a pod without a node',
    deployment({ readyReplicas: 2 }, 3),
    [{ ...pod({}), status: { conditions: [{ type: 'PodScheduled', status: 'False', message: '0/1 nodes are available' }] } }],
    'warning',
    ['2 of 3 pods are ready', 'pod web-1: no node takes it: 0/1 nodes are available'],
  ],
  [
    'terminating pods and pods of others',
    deployment({ readyReplicas: 1 }),
    [
      { ...pod({ terminated: {} }), metadata: { ...pod({}).metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } },
      { ...pod({ terminated: {} }), metadata: { ...pod({}).metadata, namespace: 'other' } },
    ],
    'ok',
    [],
  ],
])('the row of %s is right', (_, object, pods, severity, conditions) => {
  expect(describeDeployment(object, pods)).toEqual({ severity, kind: 'Deployment', namespace: 'shop', name: 'web', conditions })
})
