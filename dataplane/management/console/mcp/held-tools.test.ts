import { expect, test } from '@jest/globals'
import type { Backend } from '#gen/config/types.ts'
import type { FamilyDump } from '../../../observe/telemetry/metrics/registry.ts'
import { findHeldTools, HELD_TOOLS_FAMILIES } from './held-tools.ts'

const dump = (...held: readonly (readonly [backend: string, server: string, count: number])[]): readonly FamilyDump[] => [
  {
    kind: 'gauge',
    name: HELD_TOOLS_FAMILIES[0] ?? '',
    help: '',
    labels: ['backend', 'server'],
    merge: 'max',
    bounds: [],
    series: held.map(([backend, server]) => [backend, server]),
    values: Float64Array.from(held, ([, , count]) => count),
  },
]
const config = { backends: new Map([['ns/a', { key: 'ns/a', mcp: { targets: [] } } as unknown as Backend]]) }

test('the greatest number of all threads is that of a target; targets without held tools and backends that are gone are left out', () => {
  const threads = [dump(['ns/a', 'x', 1], ['ns/a', 'y', 0]), dump(['ns/gone', 'x', 5], ['ns/a', 'x', 3]), dump(['ns/a', 'x', 0])]
  expect(findHeldTools(threads, config)).toEqual([{ backend: 'ns/a', server: 'x', count: 3 }])
})
