import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { ADDRESS_TYPE, RESOURCE_TYPE } from '#api/names.ts'
import { createEncoder, type Encode, type ServedMessage } from './encode.ts'
import { roleOf } from './server.ts'
import { buildGlobalSnapshot, compareSnapshots, GatewaySnapshot } from './snapshot.ts'

const bind = (key: string, port: number): ServedMessage => ({ kind: 'bind', key, message: { key, port } })
const service = (key: string): ServedMessage => ({ kind: 'service', key, message: { key, ports: [] } })
const build = (messages: readonly ServedMessage[], encode: Encode = createEncoder()): GatewaySnapshot => {
  const snapshot = new GatewaySnapshot()
  snapshot.update(messages, encode)
  return snapshot
}

describe('a snapshot', () => {
  test('holds services as addresses and other messages as resources, named by kind and key', () => {
    const { types } = build([bind('a', 1), { ...service('a'), kind: 'backend' }, service('a')])
    expect([...(types.get(RESOURCE_TYPE)?.keys() ?? [])]).toEqual(['bind/a', 'backend/a'])
    expect([...(types.get(ADDRESS_TYPE)?.keys() ?? [])]).toEqual(['service/a'])
  })

  test('has versions that depend on names and content alone', () => {
    const versionsOf = (...messages: ServedMessage[]): (string | undefined)[] => {
      const entries = build(messages).types.get(RESOURCE_TYPE)
      return messages.map(({ kind, key }) => entries?.get(`${kind}/${key}`)?.version)
    }
    const [first, second, third] = versionsOf(bind('a', 1), bind('b', 1), bind('c', 2))
    expect(first).toMatch(/^[0-9a-f]{16}$/)
    expect(versionsOf(bind('a', 1))).toEqual([first])
    expect(new Set([first, second, third, ...versionsOf(bind('a', 2))]).size).toBe(4)
  })

  test('keeps the entries of equal content, and encodes no object twice', () => {
    let hashed = 0
    const encode = createEncoder((text) => String((hashed += 1)) && text.padEnd(16))
    const kept = bind('kept', 1)
    const snapshot = build([kept, bind('rebuilt', 1)], encode)
    const before = snapshot.types.get(RESOURCE_TYPE)?.get('bind/rebuilt')
    expect(snapshot.update([kept, bind('rebuilt', 1)], encode).size).toBe(0)
    expect(hashed).toBe(3)
    expect(snapshot.types.get(RESOURCE_TYPE)?.get('bind/rebuilt')).toBe(before)
  })

  test('reports the names that were added, changed and removed', () => {
    const encode = createEncoder()
    const snapshot = build([bind('same', 1), bind('changed', 1), bind('removed', 1), service('s')], encode)
    const changes = snapshot.update([bind('same', 1), bind('changed', 2), bind('added', 1), service('s')], encode)
    expect(Object.fromEntries(changes)).toEqual({ [RESOURCE_TYPE]: ['bind/changed', 'bind/added', 'bind/removed'] })
    expect(Object.fromEntries(snapshot.update([], encode))[ADDRESS_TYPE]).toEqual(['service/s'])
  })

  test('that follows edits equals a new one, and names what differs', () => {
    const list = fc.uniqueArray(fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd', 'e'), port: fc.nat({ max: 2 }), isService: fc.boolean() }), {
      selector: ({ key, isService }) => `${key} ${isService}`,
    })
    const encode = createEncoder()
    // One object for each content, so that identity means equality.
    const known = new Map<string, ServedMessage>()
    const toMessage = ({ key, port, isService }: { key: string; port: number; isService: boolean }): ServedMessage => {
      const id = `${key} ${port} ${isService}`
      const message = known.get(id) ?? (isService ? service(key) : bind(key, port))
      known.set(id, message)
      return message
    }
    fc.assert(
      fc.property(fc.array(list, { maxLength: 6 }), (lists) => {
        const snapshot = new GatewaySnapshot()
        let before = build([])
        for (const messages of lists.map((each) => each.map(toMessage))) {
          const changes = snapshot.update(messages, encode)
          const fresh = build(messages, encode)
          // By name: the order of entries says nothing.
          const namesOf = (each: typeof changes) => Object.fromEntries([...each].map(([typeUrl, names]) => [typeUrl, new Set(names)]))
          expect(namesOf(changes)).toEqual(namesOf(compareSnapshots(before, fresh)))
          expect(snapshot.types).toEqual(fresh.types)
          before = fresh
        }
      }),
    )
  })

  test('of clients without a role holds the services of all Gateways, and nothing else', () => {
    const encode = createEncoder()
    const { types } = buildGlobalSnapshot([build([bind('a', 1), service('x')], encode), build([service('y')], encode)])
    expect([...types].flatMap(([typeUrl, entries]) => [...entries.keys()].map((name) => [typeUrl, name]))).toEqual([
      [ADDRESS_TYPE, 'service/x'],
      [ADDRESS_TYPE, 'service/y'],
    ])
  })

  test('is selected by namespace and safe name', () => {
    expect(roleOf('ns/gw')).toBe('ns~gw')
    expect(roleOf(`ns/${'g'.repeat(64)}`)).toMatch(/^ns~g{50}-[0-9a-f]{12}$/)
  })
})
