import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { collections, startFakeApi, type FakeApi } from '../kube/testing.ts'
import type { StoredBucket } from './pool.ts'
import { createConfigMapStore, decodeBuckets, encodeBuckets } from './store.ts'

let api: FakeApi
beforeEach(async () => (api = await startFakeApi({ install: [collections.configMaps] })))
afterEach(() => api.close())

const bucketOf = (key: string, used = 3): StoredBucket => [
  'ns/p team requests Day',
  key,
  20_416,
  [
    ['a', used, used + 2],
    ['b', 1, 1],
  ],
]
const storeOf = () => createConfigMapStore({ connection: api.connection, findUid: (gateway) => (gateway === 'ns/gw' ? 'uid-1' : undefined) })

describe('a store of counters', () => {
  test('writes a ConfigMap that the Gateway owns, and reads it again', async () => {
    const store = storeOf()
    expect(await store.load('ns/gw')).toEqual([])
    await store.save('ns/gw', [bucketOf('all')])
    await store.save('ns/gw', [bucketOf('all'), bucketOf('k')])
    expect(await storeOf().load('ns/gw')).toEqual([bucketOf('all'), bucketOf('k')])
    expect(api.get(collections.configMaps, 'ns', 'gw-budgets')?.metadata).toMatchObject({
      labels: { 'proxy.dev/budget-counters': 'true' },
      ownerReferences: [{ kind: 'Gateway', name: 'gw', uid: 'uid-1' }],
    })
  })

  test('does not replace what another operator has written since', async () => {
    const [first, second] = [storeOf(), storeOf()]
    await first.load('ns/gw')
    await first.save('ns/gw', [bucketOf('all', 1)])
    await second.load('ns/gw')
    await second.save('ns/gw', [bucketOf('all', 2)])
    await expect(first.save('ns/gw', [bucketOf('all', 1)])).rejects.toMatchObject({ status: 409 })
    expect(await storeOf().load('ns/gw')).toEqual([bucketOf('all', 2)])
  })

  test('writes nothing for a Gateway that is gone', async () => {
    const store = storeOf()
    await store.load('ns/old')
    await store.save('ns/old', [bucketOf('all')])
    expect(api.list(collections.configMaps)).toEqual([])
  })

  test('leaves out the least used counters of a ConfigMap that would be too large', () => {
    const buckets = Array.from({ length: 1000 }, (_, index) => bucketOf(`key-${index}`, index))
    const kept = decodeBuckets(encodeBuckets(buckets, 20_000))
    expect(kept.length).toBeGreaterThan(200)
    expect(kept.map(([, key]) => key)).toContain('key-999')
    expect(kept.map(([, key]) => key)).not.toContain('key-1')
  })

  test('rejects counters of an unknown version', () => {
    expect(() => decodeBuckets('{"version":2}')).toThrow('version 2')
  })
})
