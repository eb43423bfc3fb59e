import { execFile } from 'node:child_process'
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { stringify } from 'yaml'
import { findFreePorts } from '../../e2e/harness/program/ports.ts'
import { startProgram } from '../../e2e/harness/program/program.ts'
import { listPlatforms, packExecutable } from './executable.ts'

const run = promisify(execFile)
const own = process.arch === 'arm64' ? 'arm64' : 'amd64'
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'executable-'))
  for (const platform of listPlatforms()) {
    const { name, content } = await packExecutable(platform, '0.2.0', 'proxyctl')
    expect(name).toBe(`proxyctl-0.2.0-linux-${platform.architecture}.tar.gz`)
    const target = join(directory, platform.architecture)
    await run('mkdir', [target])
    await writeFile(join(directory, name), content)
    await run('tar', ['-xzf', join(directory, name), '-C', target])
  }
})
afterAll(() => rm(directory, { recursive: true }))

const program = (architecture: string): string => join(directory, architecture, 'proxyctl')

test('proxyctl runs as an executable without Node, packages or environment', async () => {
  expect((await stat(program(own))).mode & 0o111).toBe(0o111)
  const options = { env: {}, cwd: directory }
  expect((await run(program(own), ['version'], options)).stdout).toMatch(/^proxyctl +0\.2\.0 /)
  const gateway = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', metadata: { name: 'web' }, spec: { gatewayClasName: 'proxy' } }
  await writeFile(join(directory, 'gateway.json'), JSON.stringify(gateway))
  await expect(run(program(own), ['lint', 'gateway.json'], options)).rejects.toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/gatewayClasName: unknown field.*gatewayClassName/),
  })
})

test.each([
  ['amd64', 62],
  ['arm64', 183],
])('the executable for %s is of its architecture and contains the script as a note', async (architecture, machine) => {
  const file = await readFile(program(architecture))
  expect(file.readUInt16LE(18)).toBe(machine)
  expect(findNote(file)?.includes('usage: proxyctl')).toBe(true)
})

/** Content of the note with Node's script, found by the program headers, as Node finds it. */
function findNote(file: Buffer): Buffer | undefined {
  const start = Number(file.readBigUInt64LE(32))
  for (let index = 0; index < file.readUInt16LE(56); index++) {
    const header = start + index * 56
    if (file.readUInt32LE(header) !== 4) continue
    const at = Number(file.readBigUInt64LE(header + 8))
    const nameBytes = file.readUInt32LE(at)
    if (file.toString('latin1', at + 12, at + 11 + nameBytes) !== 'NODE_SEA_BLOB') continue
    const from = at + 12 + Math.ceil(nameBytes / 4) * 4
    return file.subarray(from, from + file.readUInt32LE(at + 4))
  }
  return undefined
}

test('the archive holds the licenses of proxyctl and of Node', async () => {
  expect(await readFile(join(directory, own, 'LICENSE'), 'utf8')).toMatch(/Apache License/)
  expect(await readFile(join(directory, own, 'LICENSE.node'), 'utf8')).toMatch(/Node\.js is licensed/)
})

test('the gateway runs as an executable: workers, a plugin, the console; its files are removed at the end', async () => {
  const { name, content } = await packExecutable({ os: 'linux', architecture: own }, '0.2.0', 'proxy-service')
  expect(name).toBe(`proxy-service-0.2.0-linux-${own}.tar.gz`)
  const [place, files] = [await mkdtemp(join(directory, 'gateway-')), await mkdtemp(join(directory, 'files-'))]
  await writeFile(join(directory, name), content)
  await run('tar', ['-xzf', join(directory, name), '-C', place])
  const [port = 0, admin = 0] = await findFreePorts(2)
  await writeFile(join(place, 'hello.ts'), PLUGIN)
  await writeFile(join(place, 'gateway.yaml'), stringify(configOf(port)))
  const local = '127.0.0.1:0'
  const unset = Object.fromEntries(Object.keys(process.env).map((key) => [key, undefined]))
  const gateway = startProgram({
    name: 'proxy-service',
    command: join(place, 'proxy-service'),
    args: ['run', 'gateway.yaml'],
    cwd: place,
    env: { ...unset, TMPDIR: files, ADMIN_ADDR: `127.0.0.1:${admin}`, STATS_ADDR: local, READINESS_ADDR: local },
  })
  try {
    await gateway.waitForLine(/\bstarted\b.*version=0\.2\.0/, 120_000)
    const response = await fetch(`http://127.0.0.1:${port}/`)
    expect([response.headers.get('x-greeting'), await response.text()]).toEqual(['Hello', 'ok'])
    expect(await (await fetch(`http://127.0.0.1:${admin}/`, { headers: { accept: 'text/html' } })).text()).toContain('/assets/main-')
    expect((await readdir(files)).length).toBe(1)
    expect((await stat(join(files, (await readdir(files))[0] ?? ''))).mode & 0o777).toBe(0o700)
  } finally {
    expect(await gateway.stop()).toEqual({ code: 0, signal: null })
  }
  expect(await readdir(files)).toEqual([])
})

const PLUGIN = `import { definePlugin } from '@proxy/plugin'
export default definePlugin({ setup: () => ({ async request(c, next) { await next(); c.header('x-greeting', 'Hello') } }) })
`

const configOf = (port: number): object => ({
  config: { workers: 2 },
  binds: [
    {
      port,
      listeners: [
        {
          routes: [{ policies: { plugins: [{ name: 'hello', source: { file: 'hello.ts' } }], directResponse: { status: 200, body: 'ok' } } }],
        },
      ],
    },
  ],
})
