import { expect, test } from '@jest/globals'
import type { Backend } from '#gen/config/types.ts'
import { createConfigStore } from '../config/store.ts'
import { createServiceLoader } from './services.ts'

const options = { onEviction: () => undefined, keys: [], version: '1' }
const rows: [string, Partial<Backend>, string[]][] = [
  ['a static backend loads no service', { static: { host: 'a', port: 80 } }, []],
  ['an LLM backend loads its service', { ai: { groups: [] } }, ['ai']],
  ['an MCP backend loads its service', { mcp: { targets: [] } }, ['mcp']],
  [
    'an agent runtime backend loads its service',
    { cloudBackend: { agentRuntime: { arn: 'arn' } } as unknown as NonNullable<Backend['cloudBackend']> },
    ['cloudBackend'],
  ],
]

test.each(rows)('%s before the config version is applied', async (_, backend, expected) => {
  const store = createConfigStore()
  const { factories, load } = createServiceLoader(options)
  store.onPrepare(load)
  let loaded: string[] | undefined
  store.subscribe(() => (loaded = Object.keys(factories)))
  const batch = { upserts: [{ kind: 'backend', message: { key: 'ns/b', ...backend } } as const], removals: [] }
  ;(await store.prepare('file', batch))()
  expect(loaded).toEqual(expected)
})

test.each([
  ['opens with the first MCP backend, once', { mcp: { targets: [] } }, 1],
  ['does not open without an MCP backend', { ai: { groups: [] } }, 0],
])('the port for other replicas %s', async (_, backend, expected) => {
  let opened = 0
  const peers = { address: undefined, send: () => undefined, handle: () => undefined, drain: () => Promise.resolve() }
  const openPeers = async () => {
    opened++
    return peers
  }
  const { load } = createServiceLoader({ ...options, openPeers })
  const next = { ...createConfigStore().snapshot(), backends: new Map([['ns/b', { key: 'ns/b', ...backend }]]) }
  await Promise.all([load(next), load(next)])
  expect(opened).toBe(expected)
})

test('config versions prepared concurrently share one service factory', async () => {
  const { factories, load } = createServiceLoader(options)
  const next = { ...createConfigStore().snapshot(), backends: new Map([['ns/b', { key: 'ns/b', ai: { groups: [] } }]]) }
  await load(next)
  const first = factories.ai
  await Promise.all([load(next), load(next)])
  expect(factories.ai).toBe(first)
})
