import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { createConfigStore, type ConfigBatch, type ConfigChanges, type ConfigMessage, type ConfigSource } from './store.ts'

const bind = (key: string, port: number): ConfigMessage => ({ kind: 'bind', message: { key, port } })
const secret = (key: string, certificate: string): ConfigMessage => ({ kind: 'secret', message: { key, type: 'ca', certificate } })
const upsert = (...upserts: ConfigMessage[]): ConfigBatch => ({ upserts, removals: [] })
const list = (changes: ConfigChanges): string[] => [...changes].flatMap(([kind, keys]) => [...keys].map((key) => `${kind} ${key}`)).toSorted()

describe('the config store', () => {
  test('starts empty, and makes one version per batch', () => {
    const store = createConfigStore()
    const empty = store.snapshot()
    expect([empty.version, empty.binds.size]).toEqual([0, 0])
    const changes = store.apply('stream', upsert(bind('a', 1), secret('a', 'x')))
    expect(list(changes)).toEqual(['bind a', 'secret a'])
    expect(store.snapshot()).toMatchObject({ version: 1 })
    expect(empty.binds.size).toBe(0)
  })

  test('keeps unchanged maps and messages as the same objects', () => {
    const store = createConfigStore()
    store.apply('stream', upsert(bind('a', 1), bind('b', 1), secret('s', 'x')))
    const before = store.snapshot()
    store.apply('stream', upsert(bind('a', 2)))
    const after = store.snapshot()
    expect(after.secrets).toBe(before.secrets)
    expect(after.binds.get('b')).toBe(before.binds.get('b'))
    expect([before.binds.get('a')?.port, after.binds.get('a')?.port]).toEqual([1, 2])
  })

  test('makes no version for a batch that changes nothing', () => {
    const store = createConfigStore()
    let calls = 0
    store.subscribe(() => (calls += 1))
    expect(store.apply('stream', { upserts: [], removals: [{ kind: 'bind', key: 'none' }] }).size).toBe(0)
    const one = bind('a', 1)
    store.apply('file', upsert(one))
    store.apply('file', upsert(one))
    expect([store.snapshot().version, calls]).toEqual([1, 1])
  })

  test('accepts a batch that removes a resource and adds it again', () => {
    const store = createConfigStore()
    store.apply('stream', upsert(bind('a', 1)))
    store.apply('stream', { upserts: [bind('a', 2)], removals: [{ kind: 'bind', key: 'a' }] })
    expect(store.snapshot().binds.get('a')?.port).toBe(2)
  })

  test('applies a prepared batch on request, after the preparers have finished', async () => {
    const store = createConfigStore()
    const prepared: number[] = []
    const told: number[] = []
    store.onPrepare(async (next) => {
      await Promise.resolve()
      prepared.push(next.binds.size)
    })
    store.subscribe((snapshot) => told.push(snapshot.binds.size))
    const apply = await store.prepare('stream', upsert(bind('a', 1), bind('b', 1)))
    expect([store.snapshot().version, prepared, told]).toEqual([0, [2], []])
    expect(list(apply())).toEqual(['bind a', 'bind b'])
    expect([store.snapshot().version, prepared, told]).toEqual([1, [2], [2]])
    const nothing = await store.prepare('stream', { upserts: [], removals: [{ kind: 'bind', key: 'none' }] })
    expect([nothing().size, store.snapshot().version, prepared.length]).toEqual([0, 1, 1])
  })

  test.each<[string, ConfigBatch]>([
    ['a message', upsert(bind('c', 3))],
    ['a message that one of the stream overrides', upsert(bind('a', 2))],
  ])('applies a prepared batch to its current state if the other source applied %s meanwhile', async (_, meanwhile) => {
    const [store, expected] = [createConfigStore(), createConfigStore()]
    for (const each of [store, expected]) each.apply('stream', upsert(bind('a', 1)))
    const removal: ConfigBatch = { upserts: [bind('b', 1)], removals: [{ kind: 'bind', key: 'a' }] }
    const apply = await store.prepare('stream', removal)
    store.apply('file', meanwhile)
    apply()
    expected.apply('file', meanwhile)
    expected.apply('stream', removal)
    expect(store.snapshot().binds).toEqual(expected.snapshot().binds)
  })

  test('prefers the message of the stream over that of the file with the same key, until the stream removes it', () => {
    const store = createConfigStore()
    const port = (): number | undefined => store.snapshot().binds.get('a')?.port
    store.apply('stream', upsert(bind('a', 1)))
    expect(store.apply('file', upsert(bind('a', 2))).size).toBe(0)
    expect(port()).toBe(1)
    expect(list(store.apply('stream', { upserts: [], removals: [{ kind: 'bind', key: 'a' }] }))).toEqual(['bind a'])
    expect(port()).toBe(2)
    store.apply('file', { upserts: [], removals: [{ kind: 'bind', key: 'a' }] })
    expect(port()).toBeUndefined()
  })

  test('notifies subscribers in order, until they unsubscribe', () => {
    const store = createConfigStore()
    const calls: string[] = []
    const leave = store.subscribe(({ version }, changes) => calls.push(`first ${version} ${list(changes).join()}`))
    store.subscribe(({ version }) => calls.push(`second ${version}`))
    store.apply('stream', upsert(bind('a', 1)))
    leave()
    store.apply('stream', upsert(bind('b', 1)))
    expect(calls).toEqual(['first 1 bind a', 'second 1', 'second 2'])
  })

  test('is initialised once all expected parts have arrived', () => {
    const store = createConfigStore()
    expect(store.isInitialised()).toBe(true)
    store.expect('resources')
    store.expect('addresses')
    store.arrive('resources')
    expect([store.pending(), store.isInitialised()]).toEqual([['addresses'], false])
    store.arrive('addresses')
    store.arrive('addresses')
    expect([store.pending(), store.isInitialised()]).toEqual([[], true])
  })

  test('equals the messages of the file overlaid with those of the stream after any batches, and its changes lead from version to version', () => {
    const message = fc.record({
      kind: fc.constantFrom('bind', 'secret'),
      key: fc.constantFrom('a', 'b', 'c'),
      value: fc.nat({ max: 2 }),
      isRemoval: fc.boolean(),
    })
    const steps = fc.array(
      fc.record({
        source: fc.constantFrom<ConfigSource>('stream', 'file'),
        messages: fc.uniqueArray(message, { maxLength: 4, selector: ({ kind, key }) => kind + key }),
      }),
      { maxLength: 12 },
    )
    const make = ({ kind, key, value }: { kind: string; key: string; value: number }): ConfigMessage =>
      kind === 'bind' ? bind(key, value) : secret(key, String(value))
    fc.assert(
      fc.property(steps, (sequence) => {
        const store = createConfigStore()
        const model = { stream: new Map<string, object>(), file: new Map<string, object>() }
        const seen = new Map<string, object>()
        store.subscribe((snapshot, changes) => {
          for (const [kind, keys] of changes)
            for (const key of keys) {
              const now = (kind === 'bind' ? snapshot.binds : snapshot.secrets).get(key)
              if (now === undefined) seen.delete(`${kind} ${key}`)
              else seen.set(`${kind} ${key}`, now)
            }
        })
        for (const { source, messages } of sequence) {
          const upserts = messages.filter(({ isRemoval }) => !isRemoval).map(make)
          const removals = messages.filter(({ isRemoval }) => isRemoval).map(({ kind, key }) => ({ kind: kind as 'bind', key }))
          store.apply(source, { upserts, removals })
          for (const { kind, key } of removals) model[source].delete(`${kind} ${key}`)
          for (const { kind, message: value } of upserts) model[source].set(`${kind} ${value.key}`, value)
        }
        const expected = Object.fromEntries([...model.file, ...model.stream])
        const { binds, secrets } = store.snapshot()
        expect(
          Object.fromEntries([...[...binds].map(([key, value]) => [`bind ${key}`, value]), ...[...secrets].map(([key, value]) => [`secret ${key}`, value])]),
        ).toEqual(expected)
        expect(Object.fromEntries(seen)).toEqual(expected)
      }),
      { numRuns: 200 },
    )
  })
})
