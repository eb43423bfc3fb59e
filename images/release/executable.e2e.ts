import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { listPlatforms, packExecutable } from './executable.ts'

const run = promisify(execFile)
const own = process.arch === 'arm64' ? 'arm64' : 'amd64'
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'executable-'))
  for (const platform of listPlatforms()) {
    const { name, content } = await packExecutable(platform, '0.2.0')
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
