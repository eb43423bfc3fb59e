import { afterEach, expect, test } from '@jest/globals'
import { until } from '../../../e2e/harness/wait.ts'
import type { Logger } from '../../telemetry/log.ts'
import { endProcesses } from './process.ts'
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
  server.start()
  await until(() => stderr().length === 3)
  expect(stderr()).toEqual(['an MCP server logged: a', `an MCP server logged: b${'x'.repeat(999)}`, 'an MCP server logged: c'])
})

test('at most 100 lines of standard error are logged in ten seconds', async () => {
  const { server, lines, stderr, advance } = start(node(`for (let i = 0; i < 500; i++) console.error(i)`))
  server.start()
  await until(() => lines.some((line) => line.includes('status 0')))
  expect(stderr().length).toBe(100)
  advance(10_000)
  server.start()
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
    server.start()
    server.start()
    await until(() => failures() === 2)
    let waited = 0
    for (;;) {
      try {
        server.start()
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

test('at most 128 processes run', async () => {
  const { server } = start(shell('read line'))
  const connections = []
  expect(() => {
    for (let count = 0; count < 200; count++) connections.push(server.start())
  }).toThrow('128 processes run')
  expect(connections.length).toBe(128)
})
