import { expect, test } from '@jest/globals'
import { apiKeyNames } from '../../request/exchange/key-names.ts'
import { readKeys } from './keys.ts'

test('each API key has the name of its entry in the Secret', () => {
  const table = readKeys([{ key: 'ns/keys', type: 'opaque', data: { 'team-a': 'k-1', 'team-b': '{"key":"k-2","metadata":{"group":"b"}}' } }])
  expect([...table.values()].map(({ metadata }) => apiKeyNames.get(metadata))).toEqual(['team-a', 'team-b'])
})
