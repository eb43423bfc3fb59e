import { expect, test } from '@jest/globals'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createReader } from '../../source/reader.ts'
import { serverName } from '../reference/commands.ts'
import { translate } from '../translate.ts'

const input = join(import.meta.dirname, '../testdata/backend-mcp-image/in.yaml')
const serversOf = async (runsServers = true) => {
  const { snapshot } = await createReader(input).load()
  return translate(snapshot, { isStandalone: true, runsServers }).mcpServers?.map(
    ({ backend, target, gateway }) => `${backend.namespace}/${backend.name} ${target} ${gateway}`,
  )
}

test('servers run whose image the GatewayClass permits, or a Gateway of their namespace', async () => {
  expect(readFileSync(input, 'utf8')).toContain('registry.example.com/mcp]')
  // The list of the Gateway replaces that of its class, in its own namespace only.
  expect(await serversOf()).toEqual(['default/own team default/gw', 'other/other platform default/gw'])
})

test('without a cluster no server runs', async () => expect(await serversOf(false)).toEqual([]))

test('names of servers are DNS labels, and unique in a namespace', () => {
  const names = [
    ['a-b', 'c'],
    ['a', 'b-c'],
    ['a.b', 'c'],
    ['x'.repeat(253), 'y'.repeat(253)],
    ['9', '9'],
  ].map(([backend = '', target = '']) => serverName(backend, target))
  expect(new Set(names).size).toBe(names.length)
  expect(names.filter((name) => !/^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name) || name.length > 63)).toEqual([])
})
