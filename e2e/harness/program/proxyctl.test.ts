import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'
import { bundleProxyctl } from '../../../images/bundle.ts'

test('the file that `make proxyctl` writes runs without the checkout and reports a Node that is too old', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'proxyctl-'))
  try {
    const file = join(directory, 'proxyctl.cjs')
    await bundleProxyctl(file)
    await writeFile(join(directory, 'config.yaml'), 'binds: [{ port: 8080, listeners: [] }]\n')
    // Without NODE_OPTIONS and NODE_PATH. Node itself may need LD_LIBRARY_PATH (.ci/exec).
    const env = { LD_LIBRARY_PATH: process.env['LD_LIBRARY_PATH'] }
    const run = (...args: string[]) => promisify(execFile)(process.execPath, [file, ...args], { cwd: directory, env })
    expect((await run('--help')).stdout).toMatch(/^usage: proxyctl /)
    expect((await run('lint', 'config.yaml')).stdout).toBe('config.yaml: no error\n')
    await run('plugin', 'init', 'tenants')
    expect((await run('plugin', 'test', 'tenants')).stdout).toMatch(/pass 1/)
    expect((await run('plugin', 'package', 'sdk')).stdout).toContain('sdk/testing.js')
    const bench = ['plugin', 'bench', 'tenants/index.ts', '--config', '{"tenants":[]}', '--duration', '100ms', '-o', 'json']
    expect(JSON.parse((await run(...bench)).stdout)).toMatchObject([{ isolation: 'InProcess' }, { isolation: 'Worker', status: 403 }])
    // An old Node; e2e/bare runs the file with a real one.
    await writeFile(join(directory, 'old.cjs'), "Object.defineProperty(process.versions, 'node', { value: '18.20.4' })\n")
    await expect(promisify(execFile)(process.execPath, ['--require', './old.cjs', file, 'version'], { cwd: directory, env })).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^proxyctl needs Node 22\.19 or newer; this is v/),
    })
  } finally {
    await rm(directory, { recursive: true })
  }
})
