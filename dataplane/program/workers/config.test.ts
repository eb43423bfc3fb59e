import { describe, expect, test } from '@jest/globals'
import type { Policy } from '#gen/config/types.ts'
import { createConfigStore, type ConfigSnapshot } from '../../config/store.ts'
import { ConfigEncoder, decodeConfig, type SectionNames } from './config.ts'

const bind = (key: string, port: number) => ({ kind: 'bind', message: { key, port } }) as const
const policy = (key: string, requests: number) =>
  ({
    kind: 'policy',
    message: {
      key,
      policy: { kind: 'ProxyPolicy', namespace: 'a', name: key },
      target: { kind: 'Gateway', namespace: 'a', name: 'a' },
      traffic: { rateLimit: { local: [{ requests, unit: 'Minutes' }] } },
    } as Policy,
  }) as const

const localOf = (snapshot: ConfigSnapshot, key: string): object => snapshot.policies.get(key)?.traffic?.rateLimit?.local ?? {}

/** A main thread and a worker with stores of their own. */
function start() {
  const encoder = new ConfigEncoder()
  const main = createConfigStore()
  const worker = () => {
    const store = createConfigStore()
    const names: SectionNames = new WeakMap()
    let sent: ConfigSnapshot | undefined
    const sync = () => {
      const next = main.snapshot()
      store.apply('stream', decodeConfig(encoder.encode(sent, next), names))
      sent = next
    }
    return { store, sync, nameOf: (key: string) => names.get(localOf(store.snapshot(), key)) }
  }
  return { main, worker, encoder }
}

describe('the config of a worker', () => {
  test('follows additions, changes and removals, and keeps unchanged messages', () => {
    const { main, worker } = start()
    const own = worker()
    main.apply('file', { upserts: [bind('a', 1), bind('b', 2)], removals: [] })
    own.sync()
    const unchanged = own.store.snapshot().binds.get('b')
    main.apply('file', { upserts: [bind('a', 3), bind('c', 4)], removals: [] })
    own.sync()
    expect([...own.store.snapshot().binds.values()].map(({ port }) => port)).toEqual([3, 2, 4])
    expect(own.store.snapshot().binds.get('b')).toBe(unchanged)
    main.apply('file', { upserts: [], removals: [{ kind: 'bind', key: 'a' }] })
    own.sync()
    expect([...own.store.snapshot().binds.keys()]).toEqual(['b', 'c'])
  })

  test('names rate limits alike in all workers, also in one that starts later, and anew when they change', () => {
    const { main, worker } = start()
    const first = worker()
    main.apply('file', { upserts: [policy('p', 1), policy('q', 1)], removals: [] })
    first.sync()
    const later = worker()
    later.sync()
    const before = first.nameOf('p')
    expect(before).toBeDefined()
    expect(later.nameOf('p')).toBe(before)
    expect(first.nameOf('q')).not.toBe(before)
    main.apply('file', { upserts: [policy('p', 2)], removals: [] })
    first.sync()
    expect(first.nameOf('p')).not.toBe(before)
    later.sync()
    expect(later.nameOf('p')).toBe(first.nameOf('p'))
  })

  test('is encoded once for all workers with the same version', () => {
    const { main, encoder } = start()
    const before = main.snapshot()
    main.apply('file', { upserts: [bind('a', 1)], removals: [] })
    expect(encoder.encode(before, main.snapshot()).json).toBe(encoder.encode(before, main.snapshot()).json)
  })
})
