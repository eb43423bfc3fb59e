import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { BRIDGE_CONFIG, bridgeFiles, bridgeNode } from '#api/bridge.ts'
import { findFreePorts } from '../../../e2e/harness/program/ports.ts'
import { startProgram, tailOf, type Program } from '../../../e2e/harness/program/program.ts'
import { until } from '../../../e2e/harness/wait.ts'
import { bundleDataplane } from '../../../images/bundle.ts'
import { scriptCommand } from '../../backend/mcp/stdio/testing.ts'

let directory: string
let url: URL
let bridge: Program
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'bridge-'))
  const [port = 0, readiness = 0] = await findFreePorts(2)
  url = new URL(`http://127.0.0.1:${port}/`)
  const local = '127.0.0.1:0'
  const config = {
    config: { workers: 1, adminAddr: local, statsAddr: local, readinessAddr: `127.0.0.1:${readiness}` },
    mcp: { port, addresses: ['127.0.0.1'], server: { command: scriptCommand().command.map((part) => part.replaceAll('${', () => '$${')), inheritEnv: true } },
  }
  const main = await bundleDataplane(join(directory, 'image'))
  const env = { ...process.env, [BRIDGE_CONFIG]: JSON.stringify(config) }
  await promisify(execFile)(process.execPath, [main, '--install-bridge', join(directory, 'bridge')], { env })
  // The environment of a server that has settings of data planes with other meanings.
  const [program, ...args] = bridgeNode(join(directory, 'bridge'))
  const ofServer = { ...scriptCommand().env, TOKEN: 'secret', XDS_ADDRESS: 'none', NAMESPACE: 'x', WORKERS: 'many' }
  bridge = startProgram({
    name: 'bridge',
    command: program,
    args: [...args, join(directory, 'bridge', bridgeFiles.program), '--bridge', '-f', join(directory, 'bridge', bridgeFiles.config)],
    env: { ...Object.fromEntries(Object.keys(process.env).map((name) => [name, undefined])), ...ofServer },
  })
  await until(
    async () => (await fetch(`http://127.0.0.1:${readiness}/healthz/ready`).catch(() => undefined))?.ok === true || bridge.hasExited(),
    () => tailOf(bridge.lines),
  )
})
afterAll(async () => {
  await bridge.stop()
  await rm(directory, { recursive: true, force: true })
})

test('the files of the bridge have Node, its loader, its libraries and the program', async () => {
  const files = join(directory, 'bridge')
  expect((await readdir(files)).toSorted()).toEqual(['app', 'config.json', 'lib', 'loader', 'node'])
  expect(await readdir(join(files, 'lib'))).toContain('libc.so.6')
  for (const file of ['loader', 'node']) expect((await stat(join(files, file))).mode & 0o777).toBe(0o755)
})

test('a Node that runs by its loader serves a program, which has the environment and no variable of the loader', async () => {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(url))
  const call = async (name: string, args: Record<string, unknown> = {}): Promise<string> =>
    ((await client.callTool({ name, arguments: args })).content as { text: string }[])[0]?.text ?? ''
  expect(await call('echo', { text: 'x' })).toBe('x')
  const names = Object.keys({ ...scriptCommand().env, TOKEN: '', XDS_ADDRESS: '', NAMESPACE: '', WORKERS: '' }).toSorted()
  expect(JSON.parse(await call('env'))).toEqual(names)
  await client.close()
})
