import { expect, test } from '@jest/globals'
import type { Backend } from '#gen/config/types.ts'
import { createConfigStore } from '../config/store.ts'
import { createRooms } from './services.ts'

const options = { onEviction: () => undefined, keys: [], version: '1' }
const rows: [string, Partial<Backend>, string[]][] = [
  ['a static backend needs none', { static: { host: 'a', port: 80 } }, []],
  ['a backend of LLMs', { ai: { groups: [] } }, ['ai']],
  ['a backend of MCP servers', { mcp: { targets: [] } }, ['mcp']],
  ['a backend of agents', { cloudBackend: { agentRuntime: { arn: 'arn' } } as unknown as NonNullable<Backend['cloudBackend']> }, ['cloudBackend']],
]

test.each(rows)('%s: its room is there before its version is', async (_, backend, expected) => {
  const store = createConfigStore()
  const { factories, load } = createRooms(options)
  store.onPrepare(load)
  let loaded: string[] | undefined
  store.subscribe(() => (loaded = Object.keys(factories)))
  const batch = { upserts: [{ kind: 'backend', message: { key: 'ns/b', ...backend } } as const], removals: [] }
  ;(await store.prepare('file', batch))()
  expect(loaded).toEqual(expected)
})

test('versions that are prepared at once share one factory', async () => {
  const { factories, load } = createRooms(options)
  const next = { ...createConfigStore().snapshot(), backends: new Map([['ns/b', { key: 'ns/b', ai: { groups: [] } }]]) }
  await load(next)
  const first = factories.ai
  await Promise.all([load(next), load(next)])
  expect(factories.ai).toBe(first)
})
