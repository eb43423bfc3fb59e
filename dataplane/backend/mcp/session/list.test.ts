import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { staticTarget, type GatewayConfig, type McpGateway } from '../testing/gateway.ts'
import { begin, call, initialize, MCP_HEADERS, send, sendModern, TestBed, until } from '../testing/test-bed.ts'
import { listSessions } from './list.ts'
import { logIdOf } from './sessions.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

async function start(count = 1) {
  const one = await bed.upstream('one')
  const config: GatewayConfig = { mcp: { targets: [staticTarget('a', one.port)] } }
  const clock = { ms: 1000 }
  const gateways: McpGateway[] = []
  for (let i = 0; i < count; i++) gateways.push(await bed.gateway({ ...config, monotonicMs: () => clock.ms }))
  return { clock, gateways, list: (index = 0, limit = 10) => listSessions(gateways[index]?.parts.destinations ?? {}, limit) }
}

describe('the list of MCP sessions', () => {
  test('has client, revision, age and targets of each, but not its id', async () => {
    const { clock, gateways, list } = await start()
    const { id, post } = await begin(gateways[0]?.url as URL)
    clock.ms += 500
    await post(call('ping'), { 'mcp-protocol-version': '2025-03-26' })
    clock.ms += 20
    const listed = list()
    expect(listed).toEqual({
      total: 1,
      sessions: [
        {
          backend: 'ns/mcp',
          kind: 'session',
          id: logIdOf(id),
          revision: '2025-03-26',
          client: { name: 'raw', version: '1' },
          ageMs: 520,
          idleMs: 20,
          open: 0,
          isBound: false,
          targets: [{ name: 'a', isMissing: false }],
        },
      ],
    })
    expect(JSON.stringify(listed)).not.toContain(id.slice(0, 40))
    await send(gateways[0]?.url as URL, 'DELETE', { 'mcp-session-id': id })
    expect(list()).toEqual({ sessions: [], total: 0 })
  })

  test('has what a replica knows about a session that another one started', async () => {
    const { gateways, list } = await start(2)
    const { id } = await begin(gateways[0]?.url as URL)
    await send(gateways[1]?.url as URL, 'POST', { ...MCP_HEADERS, 'mcp-session-id': id, 'mcp-protocol-version': '2025-06-18' }, call('ping'))
    expect(list(1).sessions).toMatchObject([{ id: logIdOf(id), revision: '2025-06-18', client: undefined, ageMs: undefined }])
  })

  test('has HTTP+SSE clients and the shared sessions of clients of 2026-07-28', async () => {
    const { gateways, list } = await start()
    const url = gateways[0]?.url as URL
    await sendModern(url, 'tools/list')
    const controller = new AbortController()
    const stream = await fetch(new URL('/sse', url), { headers: { accept: 'text/event-stream' }, signal: controller.signal })
    const { value } = (await stream.body?.getReader().read()) ?? {}
    const endpoint = /data: (\S+)/.exec(new TextDecoder().decode(value))?.[1] ?? ''
    await send(url, 'POST', MCP_HEADERS, initialize('2024-11-05'), endpoint)
    const kinds = list().sessions.map(({ kind, revision, id }) => [kind, revision, id !== undefined])
    expect(kinds.toSorted((one, other) => (String(one) < String(other) ? -1 : 1))).toEqual([
      ['shared', '2026-07-28', false],
      ['stream', '2024-11-05', true],
    ])
    controller.abort()
    await until('the stream is closed', () => list().total === 1)
  })

  test('has the most recently used ones first, shortens what clients say, and counts the rest', async () => {
    const { clock, gateways, list } = await start()
    const ids: string[] = []
    for (let i = 0; i < 3; i++) {
      clock.ms++
      const body = call('initialize', {
        protocolVersion: 'x'.repeat(5000),
        capabilities: {},
        clientInfo: { name: `${i}${'n'.repeat(5000)}`, version: 'v'.repeat(100) },
      })
      ids.push(String((await send(gateways[0]?.url as URL, 'POST', MCP_HEADERS, body)).headers['mcp-session-id']))
    }
    const { sessions, total } = list(0, 2)
    expect(sessions.map(({ id, revision, client }) => [id, revision, client])).toEqual(
      [2, 1].map((i) => [logIdOf(ids[i] ?? ''), undefined, { name: `${i}${'n'.repeat(63)}`, version: 'v'.repeat(64) }]),
    )
    expect(total).toBe(3)
  })
})
