import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'
import { bundleProxyctl } from '../../../images/bundle.ts'

test('the file that `make proxyctl` writes runs without the checkout', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'proxyctl-'))
  try {
    const file = join(directory, 'proxyctl.mjs')
    await bundleProxyctl(file)
    await writeFile(join(directory, 'config.yaml'), 'binds: [{ port: 8080, listeners: [] }]\n')
    // Without NODE_OPTIONS and NODE_PATH. Node itself may need LD_LIBRARY_PATH (.ci/exec).
    const env = { LD_LIBRARY_PATH: process.env['LD_LIBRARY_PATH'] }
    const run = (...args: string[]) => promisify(execFile)(process.execPath, [file, ...args], { cwd: directory, env })
    expect((await run('--help')).stdout).toMatch(/^usage: proxyctl /)
    expect((await run('lint', 'config.yaml')).stdout).toBe('config.yaml: no error\n')
  } finally {
    await rm(directory, { recursive: true })
  }
})
