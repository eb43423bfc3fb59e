import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { packDebian } from './debian.ts'

const run = promisify(execFile)
const own = process.arch === 'arm64' ? 'arm64' : 'amd64'
let directory: string
let file: string
let root: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'debian-test-'))
  const { name, content } = await packDebian(own, { version: '0.2.0-rc.1', repository: 'Example/proxy-service' })
  expect(name).toBe(`proxy-service_0.2.0~rc.1_${own}.deb`)
  file = join(directory, name)
  root = join(directory, 'root')
  await writeFile(file, content)
  await run('dpkg-deb', ['--raw-extract', file, root])
})
afterAll(() => rm(directory, { recursive: true }))

test('the package has what dpkg needs, the config as a conffile, and files of root that only root may write', async () => {
  const field = async (name: string): Promise<string> => (await run('dpkg-deb', ['--field', file, name])).stdout.trim()
  expect([await field('Package'), await field('Version'), await field('Architecture')]).toEqual(['proxy-service', '0.2.0~rc.1', own])
  expect(await readFile(join(root, 'DEBIAN/conffiles'), 'utf8')).toBe('/etc/proxy-service/gateway.yaml\n')
  const lines = (await run('dpkg-deb', ['--contents', file])).stdout.trim().split('\n')
  expect(lines.filter((line) => !/^[-d]rw[-x]r-[-x]r-[-x] root\/root /.test(line))).toEqual([])
  for (const script of ['postinst', 'prerm', 'postrm']) {
    expect((await stat(join(root, 'DEBIAN', script))).mode & 0o777).toBe(0o755)
    await run('sh', ['-n', join(root, 'DEBIAN', script)])
  }
})

test('the Node of the package runs the gateway and proxyctl, and the config is valid', async () => {
  const library = join(root, 'usr/lib/proxy-service')
  const node = (...args: readonly string[]) => run(join(library, 'node'), args, { env: {}, cwd: directory })
  const check = await node(join(library, 'main.js'), 'check', join(root, 'etc/proxy-service/gateway.yaml'))
  expect(check.stdout).toMatch(/valid; listens on 127\.0\.0\.1:8080/)
  expect((await node(join(library, 'proxyctl.cjs'), 'version')).stdout).toMatch(/^proxyctl +0\.2\.0-rc\.1 /)
  for (const [command, program] of [
    ['proxy-service', 'main.js'],
    ['proxyctl', 'proxyctl.cjs'],
  ] as const)
    expect(await readFile(join(root, 'usr/bin', command), 'utf8')).toMatch(
      new RegExp(`^exec /usr/lib/proxy-service/node .*/usr/lib/proxy-service/${program} "\\$@"$`, 'm'),
    )
})

test('systemd accepts the unit, and rates its exposure as low', async () => {
  // The root has the programs of the unit only: systemd checks that they exist.
  const unit = join(root, 'usr/lib/systemd/system/proxy-service.service')
  const found = await run('systemd-analyze', ['verify', '--recursive-errors=no', '--man=no', unit]).catch((error: { readonly stderr: string }) => error)
  // This machine has no proxy-service in its path.
  expect(found.stderr.split('\n').filter((line) => line.includes('proxy-service') && !/Command proxy-service is not executable/.test(line))).toEqual([])
  const { stdout } = await run('systemd-analyze', ['security', '--offline=true', '--no-pager', unit])
  const [, exposure = ''] = /Overall exposure level for proxy-service\.service: ([\d.]+)/.exec(stdout) ?? []
  expect(Number(exposure)).toBeGreaterThan(0)
  expect(Number(exposure)).toBeLessThan(2.5)
})
