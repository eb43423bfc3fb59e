import { describe, expect, test } from '@jest/globals'
import type { ConfigMessage, ConfigStore } from '../../config/store.ts'
import { createConfigStore } from '../../config/store.ts'
import { compare, VersionHistory } from './versions.ts'

const backend = (key: string, host: string): ConfigMessage => ({ kind: 'backend', message: { key, static: { host, port: 80 } } })
const secret = (key: string, token: string): ConfigMessage => ({ kind: 'secret', message: { key, type: 'opaque', data: { token } } })

function start(): { store: ConfigStore; history: VersionHistory; apply(...upserts: ConfigMessage[]): void } {
  const store = createConfigStore()
  const history = new VersionHistory(store, () => 5)
  return { store, history, apply: (...upserts) => void store.apply('file', { upserts, removals: [] }) }
}

describe('the history of config versions', () => {
  test('lists what each version added, changed and removed', () => {
    const { store, history, apply } = start()
    apply(backend('ns/a', 'old'), backend('ns/b', 'b'))
    store.apply('file', { upserts: [backend('ns/a', 'new')], removals: [{ kind: 'backend', key: 'ns/b' }] })
    expect(history.list()).toMatchObject({
      current: 2,
      versions: [
        { version: 2, appliedAtMs: 5, counts: { added: 0, changed: 1, removed: 1 } },
        { version: 1, counts: { added: 2, changed: 0, removed: 0 } },
      ],
    })
    const detail = history.find(2, (_, message) => message)
    expect(detail?.changes.find(({ key }) => key === 'ns/a')).toEqual({
      kind: 'backend',
      key: 'ns/a',
      change: 'changed',
      differences: [{ path: 'static.host', before: 'old', after: 'new' }],
    })
    expect(history.find(9, (_, message) => message)).toBeUndefined()
  })

  test('keeps 20 versions with 50 changes each and 20 rejections', () => {
    const { history, apply } = start()
    for (let i = 0; i < 25; i++) apply(...Array.from({ length: 60 }, (_, n) => backend(`ns/${n}`, `host${i}`)))
    for (let i = 0; i < 25; i++) history.reject({ source: 'file', code: 'PX4004', key: null, message: String(i) })
    const { versions, rejections } = history.list()
    expect(versions.map(({ version }) => version)).toEqual(Array.from({ length: 20 }, (_, i) => 25 - i))
    expect(versions[0]).toMatchObject({ counts: { changed: 60 } })
    expect(versions[0]?.changes).toHaveLength(50)
    expect(rejections.map(({ message }) => message)).toEqual(Array.from({ length: 20 }, (_, i) => String(24 - i)))
  })

  test('passes the values of replaced secrets to the redaction too', () => {
    const { history, apply } = start()
    apply(secret('ns/s', 'first-value'))
    apply(secret('ns/s', 'second-value'))
    let known: readonly object[] = []
    history.find(2, (_, message, secrets) => {
      known = secrets
      return message
    })
    expect(JSON.stringify(known)).toContain('first-value')
    expect(JSON.stringify(known)).toContain('second-value')
  })

  test('does not keep the endpoints of large Services', () => {
    const { history, apply } = start()
    const endpoints = Array.from({ length: 300 }, (_, i) => ({ address: `10.0.1.${i}`, port: 80 }))
    apply({ kind: 'service', message: { key: 'ns/s', ports: [{ port: 80, endpoints }] } })
    expect(JSON.stringify(history.find(1, (_, message) => message))).not.toContain('10.0.1.7')
  })
})

test('differences of two values are limited to 100 and to 12 levels', () => {
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`f${i}`, i]))
  expect(compare({}, many)).toHaveLength(100)
  const deep = (leaf: number): unknown => Array.from({ length: 30 }).reduce<unknown>((inner) => ({ a: inner }), leaf)
  expect(compare(deep(1), deep(2))).toEqual([{ path: Array.from({ length: 12 }, () => 'a').join('.'), before: expect.anything(), after: expect.anything() }])
})
