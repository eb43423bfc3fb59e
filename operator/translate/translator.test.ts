import { describe, expect, test } from '@jest/globals'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fc } from '#api/property-testing.ts'
import { checkExpression } from '../program/expression.ts'
import { keyOf, kinds, type HTTPRoute, type Kind, type KubeObject } from '../source/objects.ts'
import { createReader } from '../source/reader.ts'
import { createSnapshot, updateSnapshot, type ObjectChange, type Snapshot } from '../source/snapshot.ts'
import type { TranslateOptions } from './common/context.ts'
import { translate } from './translate.ts'
import { createTranslator } from './translator.ts'

const root = join(import.meta.dirname, 'testdata')
const options: TranslateOptions = { isStandalone: true, checkExpression, backendGrants: 'route-and-policy' }
const idOf = (object: KubeObject): string => `${object.kind}/${keyOf(object)}`
const changeOf = (object: KubeObject, isDeleted = false): ObjectChange => {
  const { namespace, name } = object.metadata
  return { kind: object.kind, namespace, name, object: isDeleted ? undefined : object }
}

/** A sequence of numbers below `limit` that is the same in each run (xorshift32). */
function createSequence(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % limit
  }
}

const loadCase = async (name: string): Promise<readonly KubeObject[]> => (await createReader(join(root, name, 'in.yaml')).load()).objects

/** The object with one part changed, in a way that translation may or may not depend on. */
function edit(object: KubeObject, next: (limit: number) => number, pool: readonly KubeObject[]): KubeObject {
  const { metadata } = object
  switch (next(5)) {
    case 0:
      return { ...object, metadata: { ...metadata, generation: metadata.generation + 1 } }
    case 1:
      return { ...object, metadata: { ...metadata, labels: { app: 'a', 'kubernetes.io/service-name': 'web', team: 'x' } } }
    case 2:
      return { ...object, metadata: { ...metadata, creationTimestamp: `2020-01-01T00:00:${String(next(60)).padStart(2, '0')}Z` } }
    case 3: {
      // A status that our own write left.
      const shared = { controllerName: 'proxy.dev/proxy' }
      return { ...object, status: { parents: [shared], ancestors: [shared] } } as KubeObject
    }
    default: {
      // The content of another object of the kind.
      const others = pool.filter(({ kind }) => kind === object.kind)
      return { ...others[next(others.length)], metadata } as KubeObject
    }
  }
}

function expectEqual(snapshot: Snapshot, actual: ReturnType<typeof translate>): void {
  const expected = translate(snapshot, options)
  expect(actual.statuses).toEqual(expected.statuses)
  expect([...actual.gateways]).toEqual([...expected.gateways])
  expect(actual.keySets).toEqual(expected.keySets)
  expect(actual.documents).toEqual(expected.documents)
  expect(actual.pluginImages).toEqual(expected.pluginImages)
  expect(actual.mcpServers).toEqual(expected.mcpServers)
  expect(actual.shadows).toEqual(expected.shadows)
  // Byte for byte: what is served and written must not depend on the edits before.
  expect(JSON.stringify([...actual.gateways, actual.statuses])).toBe(JSON.stringify([...expected.gateways, expected.statuses]))
}

describe('a translation that continues from the previous snapshot equals a full one', () => {
  const cases = readdirSync(root).toSorted()

  test.each(cases)('when the objects of %s appear, change and disappear one by one', async (name) => {
    const objects = await loadCase(name)
    const next = createSequence(name.length * 7919 + 1)
    const run = createTranslator()
    let snapshot = createSnapshot([])
    const put = (...changes: readonly ObjectChange[]): void => {
      snapshot = updateSnapshot(snapshot, changes)
      expectEqual(snapshot, run(snapshot, options))
    }
    const order = objects.toSorted(() => next(3) - 1)
    for (const object of order) put(changeOf(object))
    for (const object of order) put(changeOf(edit(object, next, objects)))
    for (const object of order) put(changeOf(object, true))
    expect(run(snapshot, options)).toEqual({ gateways: new Map(), statuses: [], keySets: [], documents: [], pluginImages: [], mcpServers: [], shadows: [] })
  })

  test('when objects of all cases meet in bursts of changes', async () => {
    const pool = (await Promise.all(cases.map(loadCase))).flat()
    const next = createSequence(20_261_123)
    const run = createTranslator()
    const live = new Map<string, KubeObject>()
    let snapshot = createSnapshot([])
    for (let round = 0; round < 60; round++) {
      const changes: ObjectChange[] = []
      for (let count = next(30); count >= 0; count--) {
        const object = pool[next(pool.length)] as KubeObject
        const known = live.get(idOf(object))
        const isDeleted = known !== undefined && next(4) === 0
        const now = known ? edit(known, next, pool) : object
        if (isDeleted) live.delete(idOf(object))
        else live.set(idOf(object), now)
        changes.push(changeOf(now, isDeleted))
      }
      snapshot = updateSnapshot(snapshot, changes)
      const built = createSnapshot(live.values())
      for (const kind of Object.keys(kinds) as Kind[]) expect(snapshot.list(kind)).toEqual(built.list(kind))
      expectEqual(snapshot, run(snapshot, options))
    }
  })

  test('when routes that overlap, and policies and backends in a circle, come and go', async () => {
    const chain = await loadCase('policy-chain')
    const [first] = (await loadCase('httproute-matches')).filter((object) => object.kind === 'HTTPRoute')
    if (!first) throw new Error('no route')
    const match = fc.record(
      {
        path: fc.record({ type: fc.constantFrom('Exact', 'PathPrefix', 'RegularExpression'), value: fc.constantFrom('/', '/a', '/a/b', '/a/.*') }),
        method: fc.constantFrom('GET', 'POST'),
        headers: fc.constant([{ name: 'x-a', type: 'Exact', value: '1' }]),
      },
      { requiredKeys: ['path'] },
    )
    const backend = fc.constantFrom(
      { group: '', kind: 'Service', name: 'auth', port: 80, weight: 1 },
      { group: '', kind: 'Service', name: 'gone', port: 80, weight: 1 },
      { group: 'proxy.dev', kind: 'ProxyBackend', name: 'tunnel', weight: 1 },
    )
    const rule = fc.record({ matches: fc.array(match, { minLength: 1, maxLength: 2 }), backendRefs: fc.array(backend, { maxLength: 2 }) })
    const route = fc
      .record({
        index: fc.nat({ max: 4 }),
        hostnames: fc.subarray(['a.example.com', '*.example.com']),
        rules: fc.array(rule, { minLength: 1, maxLength: 2 }),
        year: fc.constantFrom(2020, 2021),
        isDeleted: fc.boolean(),
      })
      .map(({ index, hostnames, rules, year, isDeleted }) => {
        const metadata = { ...first.metadata, name: `r${index}`, creationTimestamp: `${year}-01-01T00:00:00Z` }
        const spec = { parentRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'gw' }], hostnames, rules }
        return changeOf({ ...first, metadata, spec }, isDeleted)
      })
    const other = fc.tuple(fc.constantFrom(...chain), fc.boolean()).map(([object, isDeleted]) => changeOf(object, isDeleted))
    const change = fc.oneof({ weight: 4, arbitrary: route }, { weight: 1, arbitrary: other })
    let shadows = 0
    fc.assert(
      fc.property(fc.array(fc.array(change, { minLength: 1, maxLength: 3 }), { maxLength: 12 }), (steps) => {
        const run = createTranslator()
        let snapshot = createSnapshot(chain)
        run(snapshot, options)
        for (const changes of steps) {
          snapshot = updateSnapshot(snapshot, changes)
          const translation = run(snapshot, options)
          expectEqual(snapshot, translation)
          shadows += translation.shadows?.length ?? 0
        }
      }),
      { numRuns: 100 },
    )
    expect(shadows).toBeGreaterThan(50)
  })
})

describe('an edit', () => {
  const load = async (): Promise<readonly KubeObject[]> => [...(await loadCase('route-attached-count')), ...(await loadCase('policy-many-gateways'))]

  test('of one route leaves messages and statuses of all other objects identical', async () => {
    const objects = await load()
    const run = createTranslator()
    const before = createSnapshot(objects)
    const first = run(before, options)
    const route = before.list('HTTPRoute')[0] as HTTPRoute
    const rules = [{ timeouts: { request: '7s' } }]
    const second = run(updateSnapshot(before, [changeOf({ ...route, spec: { ...route.spec, rules } })]), options)
    const isOwn = ({ kind, name }: { kind: string; name: string }): boolean => kind === 'HTTPRoute' && name === route.metadata.name
    const reached = new Set(route.spec.parentRefs?.map(({ name }) => name))
    const rest = second.statuses.filter(
      (status) => !isOwn(status) && !reached.has(status.name) && status.kind !== 'ProxyPolicy' && status.kind !== 'ProxyBackend',
    )
    expect(rest.filter((status) => !first.statuses.includes(status))).toEqual([])
    for (const [key, messages] of second.gateways) if (!reached.has(key.split('/')[1] ?? '')) expect(messages).toBe(first.gateways.get(key))
  })

  test('of one route leaves the messages of other routes and of Services of its Gateway identical', async () => {
    const run = createTranslator()
    const before = createSnapshot(await load())
    const [route] = before.list('HTTPRoute')
    if (!route) throw new Error('no route')
    const kept = ({ gateways }: ReturnType<typeof translate>): object[] =>
      (gateways.get(`${route.metadata.namespace}/${route.spec.parentRefs?.[0]?.name}`) ?? [])
        .filter(({ kind, key }) => kind === 'service' || (kind === 'route' && !key.startsWith(`${keyOf(route)}.`)))
        .map(({ message }) => message)
    const first = kept(run(before, options))
    const second = kept(run(updateSnapshot(before, [changeOf({ ...route, spec: { ...route.spec, hostnames: ['edited.example'] } })]), options))
    expect(first.length).toBeGreaterThan(1)
    expect(second.map((message, index) => message === first[index])).toEqual(first.map(() => true))
  })

  test('of a status computes nothing again', async () => {
    const run = createTranslator()
    const before = createSnapshot(await load())
    const first = run(before, options)
    const changes = before.list('HTTPRoute').map((route) => changeOf({ ...route, status: { parents: [] } }))
    const second = run(updateSnapshot(before, changes), options)
    expect(second.statuses.every((status, index) => status === first.statuses[index])).toBe(true)
    expect([...second.gateways].every(([key, messages]) => messages === first.gateways.get(key))).toBe(true)
  })
})

test('after an exception everything is translated again', () => {
  const run = createTranslator()
  const snapshot = createSnapshot([])
  const broken = {
    ...snapshot,
    get: snapshot.get,
    list: () => {
      throw new Error('broken')
    },
  } as unknown as Snapshot
  expect(() => run(broken, options)).toThrow('broken')
  expect(run(snapshot, options)).toEqual(translate(snapshot, options))
})
