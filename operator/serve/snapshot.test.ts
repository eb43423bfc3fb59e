import { describe, expect, test } from '@jest/globals'
import { ADDRESS_TYPE, RESOURCE_TYPE } from '#api/names.ts'
import { createEncoder, type ServedMessage } from './encode.ts'
import { roleOf } from './server.ts'
import { buildGlobalSnapshot, buildSnapshot, compareSnapshots } from './snapshot.ts'

const bind = (key: string, port: number): ServedMessage => ({ kind: 'bind', key, message: { key, port } })
const service = (key: string): ServedMessage => ({ kind: 'service', key, message: { key, ports: [] } })

describe('a snapshot', () => {
  test('holds services as addresses and other messages as resources, named by kind and key', () => {
    const { types } = buildSnapshot([bind('a', 1), { ...service('a'), kind: 'backend' }, service('a')], undefined, createEncoder())
    expect([...(types.get(RESOURCE_TYPE)?.keys() ?? [])]).toEqual(['bind/a', 'backend/a'])
    expect([...(types.get(ADDRESS_TYPE)?.keys() ?? [])]).toEqual(['service/a'])
  })

  test('has versions that depend on names and content alone', () => {
    const versionsOf = (...messages: ServedMessage[]): (string | undefined)[] => {
      const entries = buildSnapshot(messages, undefined, createEncoder()).types.get(RESOURCE_TYPE)
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
    const before = buildSnapshot([kept, bind('rebuilt', 1)], undefined, encode)
    const after = buildSnapshot([kept, bind('rebuilt', 1)], before, encode)
    expect(hashed).toBe(3)
    expect(after.types.get(RESOURCE_TYPE)?.get('bind/rebuilt')).toBe(before.types.get(RESOURCE_TYPE)?.get('bind/rebuilt'))
    expect(compareSnapshots(before, after).size).toBe(0)
    expect(buildSnapshot(after.messages, after, encode)).toBe(after)
  })

  test('reports the names that were added, changed and removed', () => {
    const encode = createEncoder()
    const before = buildSnapshot([bind('same', 1), bind('changed', 1), bind('removed', 1), service('s')], undefined, encode)
    const after = buildSnapshot([bind('same', 1), bind('changed', 2), bind('added', 1), service('s')], before, encode)
    expect(Object.fromEntries(compareSnapshots(before, after))).toEqual({ [RESOURCE_TYPE]: ['bind/changed', 'bind/added', 'bind/removed'] })
    expect(Object.fromEntries(compareSnapshots(before, undefined))[ADDRESS_TYPE]).toEqual(['service/s'])
  })

  test('of clients without a role holds the services of all Gateways, and nothing else', () => {
    const encode = createEncoder()
    const { types } = buildGlobalSnapshot([buildSnapshot([bind('a', 1), service('x')], undefined, encode), buildSnapshot([service('y')], undefined, encode)])
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
