import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { DATAPLANE_MAIN } from '../../e2e/harness/program/dataplane.ts'
import { findFreePort } from '../../e2e/harness/program/ports.ts'
import { startProgram, tailOf, type Program } from '../../e2e/harness/program/program.ts'
import { until } from '../../e2e/harness/wait.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'command-'))
})
afterAll(() => rm(directory, { recursive: true }))

const start = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Program =>
  startProgram({ name: 'proxy-service', args: [DATAPLANE_MAIN, ...args], env: { XDS_ADDRESS: undefined, ...env } })

test.each([
  [['run'], 'run names no config file; use run FILE, such as run gateway.yaml'],
  [['check'], 'check names no config file; use check FILE, such as check gateway.yaml'],
  [['start', 'a.yaml'], '"start" is no command; use one of run, check, or --help'],
  [['run', 'a.yaml', 'b.yaml'], '"b.yaml" is a second config file; run takes one'],
  [['run', 'b.yaml', '-f', 'a.yaml'], '"b.yaml" is a second config file; run takes one'],
  [['check', 'none.yaml'], 'none.yaml: no such file'],
])('the command %j ends with the reason, in one line', async (args, reason) => {
  const program = start(args)
  expect((await program.exited).code).toBe(1)
  expect(program.lines.map(({ text }) => text)).toEqual([expect.stringMatching(/^proxy-service: .* \[PX\d+\]$/)])
  expect(program.lines[0]?.text).toContain(reason)
})

test('a gateway that systemd starts reports its start, its watchdog and its end, and SIGHUP does not end it', async () => {
  // In place of the program of systemd, which sends its arguments to the socket.
  const messages = join(directory, 'messages')
  await writeFile(join(directory, 'systemd-notify'), `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >>${messages}\n`)
  await chmod(join(directory, 'systemd-notify'), 0o755)
  const [port, file] = [await findFreePort(), join(directory, 'gateway.yaml')]
  await writeFile(file, `binds:\n  - port: ${port}\n    listeners: [{ routes: [{ policies: { directResponse: { status: 200, body: ok } } }] }]\n`)
  const local = '127.0.0.1:0'
  const gateway = start(['run', file], {
    PATH: `${directory}${delimiter}${process.env['PATH'] ?? ''}`,
    NOTIFY_SOCKET: '/run/test',
    WATCHDOG_USEC: '200000',
    WORKERS: '1',
    ADMIN_ADDR: local,
    STATS_ADDR: local,
    READINESS_ADDR: local,
  })
  const received = async (): Promise<readonly string[]> => (await readFile(messages, 'utf8').catch(() => '')).split('\n')
  try {
    await until(
      async () => (await received()).includes('/run/test WATCHDOG=1'),
      () => tailOf(gateway.lines),
    )
    expect(await received()).toContain('/run/test --ready')
    gateway.signal('SIGHUP')
    const count = (await received()).length
    await until(async () => (await received()).length > count + 1)
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('ok')
  } finally {
    expect((await gateway.stop()).code).toBe(0)
  }
  expect(await received()).toContain('/run/test STOPPING=1')
})
