import { afterEach, describe, expect, test } from '@jest/globals'
import { until } from '../../../../e2e/harness/wait.ts'
import type { Logger } from '../../../observe/telemetry/log.ts'
import type { CallContext } from '../upstream/call.ts'
import type { StdioConnection } from './connection.ts'
import { countProcesses, endProcesses } from './process.ts'
import { StdioServer } from './server.ts'
import { scriptCommand } from './testing.ts'

afterEach(endProcesses)

const node = (script: string): readonly string[] => [process.execPath, '-e', script]
const shell = (script: string): readonly string[] => ['/bin/sh', '-c', script]

function start(command: readonly string[]) {
  const lines: string[] = []
  const record = (message: string, fields?: Readonly<Record<string, unknown>>): void =>
    void lines.push(`${message}: ${String(fields?.['stderr'] ?? fields?.['error'])}`)
  const log = { warn: record, info: record } as Partial<Logger> as Logger
  const { env } = scriptCommand()
  let nowMs = 0
  const server = new StdioServer('s', { command, env, log, monotonicMs: () => nowMs })
  return { server, lines, advance: (ms: number) => (nowMs += ms), stderr: () => lines.filter((line) => line.startsWith('an MCP server logged')) }
}

test('standard error is logged in lines, each cut to 1,000 characters', async () => {
  const { server, stderr } = start(node(`process.stderr.write('a\\n\\nb'.concat('x'.repeat(5000), '\\r\\nc'))`))
  server.start('client')
  await until(() => stderr().length === 3)
  expect(stderr()).toEqual(['an MCP server logged: a', `an MCP server logged: b${'x'.repeat(999)}`, 'an MCP server logged: c'])
})

test('at most 100 lines of standard error are logged in ten seconds', async () => {
  const { server, lines, stderr, advance } = start(node(`for (let i = 0; i < 500; i++) console.error(i)`))
  server.start('client')
  await until(() => lines.some((line) => line.includes('status 0')))
  expect(stderr().length).toBe(100)
  advance(10_000)
  server.start('client')
  await until(() => lines.filter((line) => line.includes('status 0')).length === 2)
  expect(lines).toContain('400 lines of an MCP server were not logged: undefined')
  expect(stderr().length).toBe(200)
})

test('delays after failures double to 30 s, and processes that fail together count once', async () => {
  const { server, lines, advance } = start(shell('exit 1'))
  const delays: number[] = []
  for (let round = 0; round < 9; round++) {
    const known = lines.length
    const failures = (): number => lines.slice(known).filter((line) => line.includes('status 1')).length
    server.start('client')
    server.start('client')
    await until(() => failures() === 2)
    let waited = 0
    for (;;) {
      try {
        server.start('client')
        break
      } catch {
        waited += 500
        advance(500)
      }
    }
    await until(() => failures() === 3)
    delays.push(waited)
    advance(60_000)
  }
  expect(delays.slice(0, 2)).toEqual([500, 2000])
  expect(delays.at(-1)).toBe(30_000)
})

const exchange = { onAbort() {} } as unknown as CallContext['exchange']
const post = (connection: StdioConnection, method: string, id: number) => connection.post({ exchange } as CallContext, '{}', { method, id })
async function begin(connections: readonly StdioConnection[]): Promise<void> {
  for (const connection of connections) await post(connection, 'initialize', 1)
  await until(() => connections.every(({ isIdle }) => isIdle))
}

describe('128 sessions', () => {
  const fill = (client: string, count: number, server: StdioServer) => Array.from({ length: count }, () => server.start(client))
  const isOpen = ({ isClosed }: StdioConnection): boolean => !isClosed
  /** The processes answer each line, whatever it says, as a server answers `initialize`, and never anything else. */
  const answering = () => start(shell(`read line; echo '{"jsonrpc":"2.0","id":1,"result":{}}'; while read line; do :; done`)).server
  test('are shared: a client that has none gets one of the client that has the most, even if all of them wait for responses', () => {
    const { server } = start(shell('read line'))
    const first = fill('hostile', 128, server)
    const others = ['a', 'b', 'c'].map((client) => server.start(client))
    expect([first.filter(isOpen).length, others.every(isOpen)]).toEqual([125, true])
    expect(first.slice(0, 3).some(isOpen)).toBe(false)
  })

  test('are not taken from clients that have fewer', () => {
    const { server } = start(shell('read line'))
    const others = ['a', 'b', 'c'].flatMap((client) => fill(client, 10, server))
    expect(() => fill('hostile', 200, server)).toThrow('128 processes run, and none of this client is idle')
    expect(others.every(isOpen)).toBe(true)
  })

  test('are shared by two clients in equal parts', () => {
    const { server } = start(shell('read line'))
    const first = fill('one', 128, server)
    const second: StdioConnection[] = []
    expect(() => {
      for (let count = 0; count < 128; count++) second.push(server.start('two'))
    }).toThrow('none of this client is idle')
    expect([first.filter(isOpen).length, second.filter(isOpen).length]).toEqual([64, 64])
  })

  test('end in the order of their last use, those that wait for a response last', async () => {
    const server = answering()
    const all = fill('client', 128, server)
    const [busy, used, idle] = all.slice(0, 3) as [StdioConnection, StdioConnection, StdioConnection]
    await begin([busy, used, idle])
    await post(busy, 'tools/call', 2)
    await used.post({ exchange } as CallContext, '{}', { method: 'notifications/initialized' })
    server.start('client')
    expect([busy, used, idle].map(isOpen)).toEqual([true, true, false])
    server.start('client')
    expect([busy, used].map(isOpen)).toEqual([true, false])
  })

  test('do not include those that are closing, of which the oldest beyond 128 are killed', async () => {
    const { server } = start(shell('trap "" TERM; while :; do sleep 1; done'))
    for (let round = 0; round < 3; round++) for (const connection of fill('client', 128, server)) connection.close()
    await until(() => countProcesses() <= 128 + 1)
    expect(server.start('client').isClosed).toBe(false)
  })
})

describe('a process that ends on its own', () => {
  test('before it answers initialize delays the next start of its client only', async () => {
    const { server, lines } = start(shell('exit 1'))
    server.start('hostile')
    await until(() => lines.some((line) => line.includes('status 1')))
    expect(() => server.start('hostile')).toThrow('starts again in 500 ms')
    expect(() => server.start('other')).not.toThrow()
  })

  test('after it answered initialize delays nobody', async () => {
    const { server, lines } = start(shell(`echo '{"jsonrpc":"2.0","id":1,"result":{}}'; read line; read line; exit 3`))
    for (let round = 1; round <= 3; round++) {
      const connection = server.start('client')
      expect(connection.isClosed).toBe(false)
      await begin([connection])
      await post(connection, 'tools/call', 2)
      await until(() => lines.filter((line) => line.includes('status 3')).length === round)
    }
  })
})
