import { expect, test } from '@jest/globals'
import { findToolClashes } from './tool-clashes.ts'

const target = (name: string, ...overrides: { name: string; rename?: string }[]) => ({ name, tools: { overrides } })

test.each([
  ['two tools with one new name', { targets: [target('a', { name: 'x', rename: 'z' }, { name: 'y', rename: 'z' })] }, ['x of target a and y of target a']],
  ['a new name that another entry has', { targets: [target('a', { name: 'x' }, { name: 'y', rename: 'x' })] }, ['x of target a and y of target a']],
  ['exchanged names', { targets: [target('a', { name: 'x', rename: 'y' }, { name: 'y', rename: 'x' })] }, []],
  ['equal names of two targets with prefixes', { targets: [target('a', { name: 'x', rename: 'z' }), target('b', { name: 'y', rename: 'z' })] }, []],
  [
    'equal names of two targets without prefixes',
    { prefixMode: 'Never', targets: [target('a', { name: 'x', rename: 'z' }), { name: 'c' }, target('b', { name: 'y', rename: 'z' })] },
    ['x of target a and y of target b'],
  ],
])('finds clashes: %s', (_, mcp, expected) => {
  expect(findToolClashes(mcp).map(({ message }) => /^tools (.*) are both/.exec(message)?.[1])).toEqual(expected)
})

test('a clash names the place of the later entry', () => {
  expect(findToolClashes({ targets: [{ name: 'o' }, target('a', { name: 'x', rename: 'z' }, { name: 'y', rename: 'z' })] })[0]?.path).toEqual([
    'targets',
    1,
    'tools',
    'overrides',
    1,
  ])
})
