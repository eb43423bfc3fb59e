import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { readResidentBytes } from '../../bench/proc.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { startProgram, type Program } from '../../harness/program/program.ts'
import { startGateway, type E2eGateway } from './gateway.ts'

let servers: Program
let gateway: E2eGateway

beforeAll(async () => {
  const port = await findFreePort()
  servers = startProgram({ name: 'mcp servers', args: [fileURLToPath(new URL('../../bench/mcp-load.ts', import.meta.url)), '3', String(port)] })
  await servers.waitForLine(/ready/)
  gateway = await startGateway({ one: { targets: [{ name: 'a', port }] } })
})
afterAll(async () => {
  await gateway?.stop()
  await servers?.stop(100)
})

const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const message = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })

test('10,000 idle sessions use at most 200 MiB, and each of them stays usable', async () => {
  const url = gateway.url('one')
  const begin = async (): Promise<string> => {
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'many', version: '1' } }
    const response = await fetch(url, { method: 'POST', headers, body: message('initialize', params) })
    await response.text()
    return response.headers.get('mcp-session-id') ?? ''
  }
  await begin()
  const before = readResidentBytes(gateway.program.pid)
  const ids: string[] = []
  const worker = async () => {
    while (ids.length < 10_000) ids.push(await begin())
  }
  await Promise.all(Array.from({ length: 32 }, worker))
  const grown = (readResidentBytes(gateway.program.pid) - before) / 1024 ** 2
  console.log(`10,000 idle sessions: ${grown.toFixed(0)} MiB`)
  expect(new Set(ids).size).toBe(ids.length)
  expect(grown).toBeLessThan(200)
  for (const id of [ids[0], ids[5000], ids.at(-1)]) {
    const response = await fetch(url, { method: 'POST', headers: { ...headers, 'mcp-session-id': id ?? '' }, body: message('tools/list', {}) })
    expect(response.status).toBe(200)
    await response.text()
  }
})
