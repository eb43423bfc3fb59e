import { afterEach, describe, expect, test } from '@jest/globals'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { createRequire } from 'node:module'
import type { MCPBackend } from '#gen/config/types.ts'
import { until } from '../../../../e2e/harness/wait.ts'
import { MCP_HEADERS, send, sendModern, TestBed } from '../testing/test-bed.ts'
import { endProcesses } from './process.ts'
import { isRunning, scriptCommand } from './testing.ts'

const bed = new TestBed()
afterEach(async () => {
  await bed.close()
  await endProcesses()
})

const backend = (env: Record<string, string> = {}, more: Partial<MCPBackend> = {}): Partial<MCPBackend> => ({
  targets: [{ name: 'script', ...(scriptCommand(env) as { command: string[]; env: Record<string, string> }) }],
  ...more,
})
const call = async (client: Client, name: string, args: Record<string, unknown> = {}): Promise<string> => {
  const { content } = (await client.callTool({ name, arguments: args })) as CallToolResult
  const [first] = content
  return first?.type === 'text' ? first.text : ''
}
const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}

describe('a target with a command', () => {
  test('serves clients with its tools, and has no other environment than env', async () => {
    const gateway = await bed.gateway({ mcp: backend({ TOKEN: 'secret' }) })
    const client = await bed.client(gateway)
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('echo')
    expect(await call(client, 'echo', { text: 'a\nb' })).toBe('a\nb')
    expect(JSON.parse(await call(client, 'env'))).toEqual(Object.keys(scriptCommand({ TOKEN: '' }).env).toSorted())
    expect(await call(client, 'noise')).toBe('done')
  })

  test('has the environment of the data plane, too, with inheritEnv', async () => {
    const target = { name: 'script', inheritEnv: true, ...(scriptCommand({ TOKEN: 'secret' }) as { command: string[]; env: Record<string, string> }) }
    const gateway = await bed.gateway({ mcp: { targets: [target] } })
    expect(JSON.parse(await call(await bed.client(gateway), 'env'))).toEqual(Object.keys({ ...process.env, ...target.env }).toSorted())
  })

  test('accepts messages with line breaks', async () => {
    const gateway = await bed.gateway({ mcp: backend() })
    const { status, headers } = await send(gateway.url, 'POST', MCP_HEADERS, JSON.stringify(initialize, null, 2))
    expect(status).toBe(200)
    const session = { ...MCP_HEADERS, 'mcp-session-id': String(headers['mcp-session-id']) }
    const list = await send(gateway.url, 'POST', session, JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list' }, null, 2))
    expect(list.text).toContain('"echo"')
  })

  test('has a process for each session, which ends with the session and takes its children with it', async () => {
    const gateway = await bed.gateway({ mcp: backend() })
    const [first, second] = [await bed.client(gateway), await bed.client(gateway)]
    const pids = [Number(await call(first, 'pid')), Number(await call(second, 'pid'))]
    const child = Number(await call(first, 'child'))
    expect([pids[0] === pids[1], isRunning(child)]).toEqual([false, true])
    await first.mcp.terminateSession()
    await until(() => !isRunning(pids[0] ?? 0) && !isRunning(child))
    expect(await call(second, 'pid')).toBe(String(pids[1]))
  })

  test('is killed if it does not exit', async () => {
    const gateway = await bed.gateway({ mcp: backend({ STUBBORN: '1' }) })
    const client = await bed.client(gateway)
    const pid = Number(await call(client, 'pid'))
    await client.mcp.terminateSession()
    await until(() => !isRunning(pid))
    expect(isRunning(process.pid)).toBe(true)
  })

  test('is killed at shutdown', async () => {
    const gateway = await bed.gateway({ mcp: backend({ STUBBORN: '1' }) })
    const pid = Number(await call(await bed.client(gateway), 'pid'))
    expect(isRunning(pid)).toBe(true)
    await endProcesses()
    await until(() => !isRunning(pid))
  })

  test('that crashes in a call ends its session, and starts again at once', async () => {
    const gateway = await bed.gateway({ mcp: backend() })
    const client = await bed.client(gateway)
    await expect(call(client, 'crash')).rejects.toThrow()
    await expect(call(client, 'pid')).rejects.toThrow('session not found')
    expect(await call(await bed.client(gateway), 'echo', { text: 'back' })).toBe('back')
  })

  test('that fails before it answers initialize starts again after a delay', async () => {
    let nowMs = 0
    const gateway = await bed.gateway({ mcp: { targets: [{ name: 'script', command: ['/bin/sh', '-c', 'exit 1'] }] }, monotonicMs: () => nowMs })
    const start = async (): Promise<string | undefined> => (await send(gateway.url, 'POST', MCP_HEADERS, initialize)).json.error?.message
    const delayed = 'failed to send message: connection failed'
    expect(await start()).not.toBe(delayed)
    expect(await start()).toBe(delayed)
    nowMs = 501
    expect(await start()).not.toBe(delayed)
  })

  test('that writes an endless line is killed', async () => {
    const gateway = await bed.gateway({ mcp: backend() })
    const client = await bed.client(gateway)
    const pid = Number(await call(client, 'pid'))
    await expect(call(client, 'flood')).rejects.toThrow()
    await until(() => !isRunning(pid))
  })

  test('that rejects initialize is ended', async () => {
    const gateway = await bed.gateway({ mcp: backend({ REJECT: '1' }) })
    const { json } = await send(gateway.url, 'POST', MCP_HEADERS, initialize)
    expect(json.error?.message).toBe('no')
  })

  test('that does not exist fails alone with failureMode FailOpen', async () => {
    const missing = { name: 'missing', command: ['/nonexistent/server'] }
    const gateway = await bed.gateway({ mcp: { targets: [...(backend().targets ?? []), missing], failureMode: 'FailOpen' } })
    const client = await bed.client(gateway)
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('script_echo')
    const alone = await bed.gateway({ mcp: { targets: [missing] } })
    const { status, text } = await send(alone.url, 'POST', MCP_HEADERS, initialize)
    expect([status, text.includes('nonexistent')]).toEqual([500, false])
  })

  test('sends notifications to the stream of its session', async () => {
    const gateway = await bed.gateway({ mcp: backend() })
    const client = await bed.client(gateway)
    const changed = new Promise<string>((resolve) => {
      client.fallbackNotificationHandler = async ({ method }) => resolve(method)
    })
    await call(client, 'announce')
    expect(await changed).toBe('notifications/tools/list_changed')
  })

  test('serves clients of 2026-07-28, and clients without sessions', async () => {
    const gateway = await bed.gateway({ mcp: backend() })
    expect((await sendModern(gateway.url, 'tools/call', { name: 'echo', arguments: { text: 'x' } })).text).toContain('"text":"x"')
    const stateless = await bed.gateway({ mcp: backend({}, { sessionRouting: 'Stateless' }) })
    const { text } = await send(stateless.url, 'POST', MCP_HEADERS, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'pid' } })
    const pid = Number(/"text":"(\d+)"/.exec(text)?.[1])
    expect(pid).toBeGreaterThan(0)
    await until(() => !isRunning(pid))
  })

  test('keeps its processes until the command changes', async () => {
    const gateway = await bed.gateway({ mcp: backend() })
    const client = await bed.client(gateway)
    const pid = Number(await call(client, 'pid'))
    gateway.configure({ mcp: backend({}, { prefixMode: 'Never' }) })
    expect(await call(client, 'pid')).toBe(String(pid))
    gateway.configure({ mcp: backend({ OTHER: '1' }) })
    await expect(call(client, 'pid')).rejects.toThrow('session not found')
    await until(() => !isRunning(pid))
    expect(Number(await call(await bed.client(gateway), 'pid'))).not.toBe(pid)
  })

  test('can be the server-everything of the SDK', async () => {
    const script = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')
    const gateway = await bed.gateway({
      mcp: { targets: [{ name: 'everything', command: [process.execPath, script, 'stdio'], env: { ...scriptCommand().env } }] },
    })
    const client = await bed.client(gateway)
    expect(await call(client, 'echo', { message: 'hello' })).toBe('Echo: hello')
    expect((await client.listResources()).resources.length).toBeGreaterThan(0)
  })
})
