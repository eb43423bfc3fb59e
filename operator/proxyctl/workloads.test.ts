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
  ['all ready', deployment({ readyReplicas: 1 }), [pod({ running: {} }, true)], 'ok', []],
  ['scaled to none', deployment({}, 0), [], 'ok', []],
  ['just starting', deployment({}), [pod({ waiting: { reason: 'ContainerCreating' } })], 'pending', ['0 of 1 pods are ready']],
  [
    'an image that is not there',
    deployment({}),
    [pod({ waiting: { reason: 'ErrImagePull', message: 'proxy:nope: not found' } })],
    'error',
    ['0 of 1 pods are ready', 'pod web-1: container proxy: ErrImagePull: proxy:nope: not found'],
  ],
  [
    'a process that ends at once',
    deployment({}),
    [pod({ waiting: { reason: 'CrashLoopBackOff', message: 'back-off' } })],
    'error',
    ['0 of 1 pods are ready', `pod web-1: container proxy ends again and again; ${log} --previous says why`],
  ],
  [
    'no config yet',
    deployment({}),
    [pod({ running: {} })],
    'pending',
    ['0 of 1 pods are ready', `pod web-1: container proxy runs and is not ready; ${log} says why`],
  ],
  [
    'a quota that is used up',
    deployment({ conditions: [{ type: 'ReplicaFailure', status: 'True', message: refusal }] }),
    [],
    'error',
    ['0 of 1 pods are ready', `no pod can be made: ${refusal}`],
  ],
  [
    'a next version that does not start beside the last one',
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
    'pods that go, and pods of others, say nothing',
    deployment({ readyReplicas: 1 }),
    [
      { ...pod({ terminated: {} }), metadata: { ...pod({}).metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } },
      { ...pod({ terminated: {} }), metadata: { ...pod({}).metadata, namespace: 'other' } },
    ],
    'ok',
    [],
  ],
])('%s', (_, object, pods, severity, conditions) => {
  expect(describeDeployment(object, pods)).toEqual({ severity, kind: 'Deployment', namespace: 'shop', name: 'web', conditions })
})
