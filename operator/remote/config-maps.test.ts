import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { setTimeout as sleep } from 'node:timers/promises'
import { collections, startFakeApi, type FakeApi } from '../kube/testing.ts'
import { systemClock } from '../serve/debounce.ts'
import type { ConfigMap } from '../source/objects.ts'
import { createConfigMapMemory, type ConfigMapMemory } from './config-maps.ts'
import { until as untilTrue } from '../../e2e/harness/wait.ts'

const { configMaps } = collections
const SYSTEM = 'proxy-system'
const A = 'a'.repeat(64)
const B = 'b'.repeat(64)
const labels = { 'app.kubernetes.io/component': 'jwks-store' }

let api: FakeApi
let memory: ConfigMapMemory
let isLeader: boolean
const errors: string[] = []
const until = (ask: () => boolean): Promise<void> => untilTrue(ask, () => errors.join('\n'))
const names = [A, B].map((source) => `jwks-store-${source}`)

beforeEach(async () => {
  api = await startFakeApi({ install: [configMaps] })
  isLeader = true
  errors.length = 0
  const find = (name: string): ConfigMap | undefined => api.get(configMaps, SYSTEM, name) as unknown as ConfigMap | undefined
  memory = createConfigMapMemory({
    kind: 'jwks-store',
    connection: api.connection,
    clock: systemClock,
    namespace: SYSTEM,
    find,
    list: () => [...names, 'jwks-store-settings'].flatMap((name) => find(name) ?? []),
    isLeader: () => isLeader,
    onError: (name, error) => errors.push(`${name}: ${String(error)}`),
  })
})
afterEach(async () => {
  memory.close()
  await api.close()
})

const put = (name: string, text: string, own: object = { labels }): void =>
  void api.put(configMaps, { metadata: { name, namespace: SYSTEM, ...own }, data: { 'jwks-store': text } })
const stored = (source: string): unknown => api.get(configMaps, SYSTEM, `jwks-store-${source}`)
const writes = (): readonly string[] => api.requests.filter((request) => !request.startsWith('GET'))
test('a fetched key set is stored with a label in the operator’s namespace, and read after a restart', async () => {
  expect(memory.recall(A)).toBeUndefined()
  memory.keep(A, '{"keys":[]}')
  await until(() => stored(A) !== undefined)
  expect(stored(A)).toMatchObject({ metadata: { namespace: SYSTEM, labels }, data: { 'jwks-store': '{"keys":[]}' } })
  expect(memory.recall(A)).toBe('{"keys":[]}')
})

test('the ConfigMap of an unused key set is deleted, and an unchanged one costs no request', async () => {
  put(`jwks-store-${A}`, 'old')
  put(`jwks-store-${B}`, 'same')
  for (const source of [A, B]) memory.recall(source)
  memory.keep(B, 'same')
  memory.forget(A)
  await until(() => stored(A) === undefined)
  expect(writes()).toHaveLength(1)
})

test('ConfigMaps of an earlier operator are deleted, and those of users stay', async () => {
  put(`jwks-store-${A}`, 'wanted')
  put(`jwks-store-${B}`, 'stale')
  put('jwks-store-settings', 'of a user', {})
  memory.recall(A)
  memory.tidy()
  await until(() => stored(B) === undefined)
  await sleep(50)
  expect([stored(A), api.get(configMaps, SYSTEM, 'jwks-store-settings')]).not.toContain(undefined)
})

test('a ConfigMap of that name without our label is ignored', () => {
  put(`jwks-store-${A}`, '{"keys":[]}', {})
  expect(memory.recall(A)).toBeUndefined()
})

test('a replica that does not lead writes nothing, and writes its key sets once it leads', async () => {
  isLeader = false
  put(`jwks-store-${B}`, 'stale')
  memory.recall(A)
  memory.keep(A, 'fetched')
  memory.tidy()
  await sleep(50)
  expect(writes()).toEqual([])
  isLeader = true
  memory.recheckAll()
  await until(() => stored(A) !== undefined)
})
