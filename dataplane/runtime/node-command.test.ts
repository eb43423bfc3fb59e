import { expect, test } from '@jest/globals'
import { nodeCommand } from './node-command.ts'

test('Node is started by its own path, and in a bridge by its loader', () => {
  expect(nodeCommand()).toEqual([process.execPath])
  expect(nodeCommand('/.mcp-bridge/loader')).toEqual(['/.mcp-bridge/loader', '--library-path', '/.mcp-bridge/lib', '/.mcp-bridge/node'])
})
