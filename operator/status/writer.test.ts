import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { setTimeout as sleep } from 'node:timers/promises'
import { watchCluster, type ClusterSource } from '../kube/source.ts'
import { collections, startFakeApi, type FakeApi, type StoredObject } from '../kube/testing.ts'
import { systemClock } from '../serve/debounce.ts'
import type { ObjectStatus } from '../model/translation.ts'
import { findTransitions } from './transitions.ts'
import { createStatusWriter, type StatusWriter } from './writer.ts'
import { until } from '../../e2e/harness/wait.ts'

const { httpRoutes } = collections
const OURS = 'proxy.dev/proxy'

let api: FakeApi
let source: ClusterSource
let writer: StatusWriter
let isLeader = true
const errors: string[] = []
const transitions: string[] = []

beforeEach(async () => {
  api = await startFakeApi({ install: [httpRoutes] })
  isLeader = true
  errors.length = 0
  transitions.length = 0
})
afterEach(async () => {
  writer.close()
  source.close()
  await api.close()
})

/** Follows the fake API; resolves when everything is listed. */
async function start(): Promise<void> {
  source = watchCluster({
    connection: api.connection,
    clock: systemClock,
    namespaceSelectors: [],
    onSnapshot: () => {},
    onStatus: (object) => writer.recheck(object),
    onError: (kind, error) => errors.push(`${kind} ${String(error)}`),
  })
  writer = createStatusWriter({
    connection: api.connection,
    find: source.find,
    isLeader: () => isLeader,
    clock: systemClock,
    now: () => new Date('2026-06-01T00:00:00Z'),
    onError: (key, error, isRetried) => errors.push(`${key} ${String(error)}${isRetried ? '' : ', for good'}`),
    onWrite: (object, before, after) =>
      transitions.push(...findTransitions(before, after).map(({ type, message }) => `${object.metadata.name} ${type} ${message}`)),
  })
  await until(() => source.isSynced())
}

const route = (name: string, status?: object): StoredObject => ({ metadata: { name, namespace: 'default' }, spec: {}, ...(status ? { status } : {}) })
const entry = (controllerName: string, message = '') => ({
  parentRef: { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'gw' },
  controllerName,
  conditions: [{ type: 'Accepted', status: 'True', reason: 'Accepted', message, observedGeneration: 1 }],
})
const wanted = (name: string, message = ''): ObjectStatus => ({
  group: 'gateway.networking.k8s.io',
  kind: 'HTTPRoute',
  namespace: 'default',
  name,
  status: { parents: [entry(OURS, message)] },
})
const patches = (): string[] => api.requests.filter((request) => request.startsWith('PATCH'))
const messagesOf = (name: string): string[] =>
  ((api.get(httpRoutes, 'default', name)?.status ?? {}) as { parents?: ReturnType<typeof entry>[] }).parents?.map(
    ({ controllerName, conditions }) => `${controllerName}: ${conditions[0]?.message}`,
  ) ?? []

test('a status that differs is written, entries of others stay, and an equal status costs no request', async () => {
  const foreign = entry('example.com/other', 'theirs')
  api.put(httpRoutes, route('a', { parents: [foreign] }))
  await start()
  writer.publish([wanted('a', 'ours')])
  await until(() => messagesOf('a').length === 2)
  expect(api.get(httpRoutes, 'default', 'a')?.status).toEqual({
    parents: [foreign, { ...entry(OURS), conditions: [{ ...entry(OURS, 'ours').conditions[0], lastTransitionTime: '2026-06-01T00:00:00Z' }] }],
  })
  // A write is counted when its response has been read.
  await until(() => writer.writes() === 1)
  for (let round = 0; round < 3; round += 1) {
    writer.publish([wanted('a', 'ours')])
    await sleep(60)
  }
  expect(patches()).toEqual([`PATCH ${httpRoutes.replace('/httproutes', '/namespaces/default/httproutes')}/a/status?fieldManager=proxy.dev%2Fproxy`])
  expect(writer.writes()).toBe(1)
})

test('an object is written at most once in 100 ms, and finally with the last published status', async () => {
  api.put(httpRoutes, route('a'))
  await start()
  const started = performance.now()
  for (let round = 0; round < 25; round += 1) {
    writer.publish([wanted('a', `round ${round}`)])
    await sleep(10)
  }
  await until(() => messagesOf('a')[0] === `${OURS}: round 24`)
  await until(() => writer.writes() > 1)
  const bound = 1 + Math.ceil((performance.now() - started) / 100)
  expect(writer.writes()).toBeLessThanOrEqual(bound)
})

test('a status that is removed from the published list is not written any more', async () => {
  for (const name of ['a', 'b']) api.put(httpRoutes, route(name))
  await start()
  const [a, b] = [wanted('a', 'one'), wanted('b', 'one')]
  writer.publish([a, b])
  await until(() => writer.writes() === 2)
  writer.publish([b])
  writer.recheckAll()
  api.put(httpRoutes, route('a', { parents: [] }))
  api.put(httpRoutes, route('b', { parents: [] }))
  await until(() => writer.writes() === 3)
  expect(messagesOf('a')).toEqual([])
  expect(messagesOf('b')).toEqual([`${OURS}: one`])
})

test('a status that a user changed is restored', async () => {
  api.put(httpRoutes, route('a'))
  await start()
  writer.publish([wanted('a', 'ours')])
  await until(() => messagesOf('a').length === 1)
  api.put(httpRoutes, { ...(api.get(httpRoutes, 'default', 'a') as StoredObject), status: { parents: [] } })
  await until(() => writer.writes() === 2)
  expect(messagesOf('a')).toEqual([`${OURS}: ours`])
})

test('a write that conflicts with a newer version is merged into it', async () => {
  api.put(httpRoutes, route('a'))
  await start()
  // Changed right before, so that the watch has not delivered it yet.
  api.put(httpRoutes, { ...(api.get(httpRoutes, 'default', 'a') as StoredObject), status: { parents: [entry('example.com/other', 'theirs')] } })
  writer.publish([wanted('a', 'ours')])
  await until(() => messagesOf('a').length === 2)
  expect(messagesOf('a')).toEqual(['example.com/other: theirs', `${OURS}: ours`])
  expect(errors).toEqual([])
})

test('a replica that does not lead writes nothing, and everything once it leads', async () => {
  api.put(httpRoutes, route('a'))
  api.put(httpRoutes, route('b'))
  isLeader = false
  await start()
  writer.publish([wanted('a'), wanted('b')])
  await sleep(100)
  expect(patches()).toEqual([])
  isLeader = true
  writer.recheckAll()
  await until(() => writer.writes() === 2)
})

test('a deleted object is no error, and a rejected status is reported and not retried until it differs', async () => {
  api.put(httpRoutes, route('a'))
  await start()
  api.fail('PATCH', httpRoutes, 422)
  writer.publish([wanted('a', 'bad'), wanted('gone')])
  await until(() => errors.length === 1)
  writer.publish([wanted('a', 'bad'), wanted('gone')])
  await sleep(150)
  expect(errors).toEqual([expect.stringMatching(/^HTTPRoute\/default\/a .*refused: Injected.*, for good$/)])
  expect(patches()).toHaveLength(1)
  api.fail('PATCH', httpRoutes)
  writer.publish([wanted('a', 'good')])
  await until(() => messagesOf('a')[0] === `${OURS}: good`)
})

test('a failed write is retried', async () => {
  api.put(httpRoutes, route('a'))
  await start()
  api.fail('PATCH', httpRoutes, 503)
  writer.publish([wanted('a', 'ours')])
  await until(() => errors.length >= 2)
  api.fail('PATCH', httpRoutes)
  await until(() => messagesOf('a').length === 1)
  // The API server has the status before its response is read.
  await until(() => writer.writes() > 0)
  expect(writer.writes()).toBe(1)
})

test('each write reports the condition that it turned bad or good, and an equal status reports nothing', async () => {
  api.put(httpRoutes, route('a'))
  await start()
  const fail = (name: string): ObjectStatus => {
    const bad = entry(OURS, 'broken')
    return {
      ...wanted(name),
      status: { parents: [{ ...bad, conditions: bad.conditions.map((each) => ({ ...each, status: 'False', reason: 'NoMatchingParent' })) }] },
    }
  }
  writer.publish([wanted('a', 'ours')])
  await until(() => writer.writes() === 1)
  writer.publish([fail('a')])
  await until(() => writer.writes() === 2)
  writer.publish([fail('a')])
  writer.publish([wanted('a', 'ours')])
  await until(() => writer.writes() === 3)
  expect(transitions).toEqual(['a Warning Accepted is False for Gateway gw: broken', 'a Normal Accepted is True for Gateway gw: ours'])
})
