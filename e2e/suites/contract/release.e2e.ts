import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../../..')
let directory: string
beforeAll(async () => void (directory = await mkdtemp(join(tmpdir(), 'release-'))))
afterAll(() => rm(directory, { recursive: true }))

test('the API server accepts the install.yaml of `make release`', async () => {
  // Executables need Node from npm, which the network namespace of the cluster does not reach.
  await run(process.execPath, [join(ROOT, 'images/release/main.ts'), '--version', 'v0.2.0', '--no-images', '--no-executables', '--out', directory])
  // A dry run of the other objects needs the namespace.
  await run('kubectl', ['create', 'namespace', 'proxy-system']).catch((error: Error) => expect(error.message).toContain('AlreadyExists'))
  const options = ['--server-side', '--force-conflicts', '--validate=strict', '--dry-run=server']
  const { stdout } = await run('kubectl', ['apply', ...options, '-f', join(directory, 'install.yaml')])
  const lines = stdout.trim().split('\n')
  expect(lines.filter((line) => !line.endsWith(' serverside-applied (server dry run)'))).toEqual([])
  expect(lines).toContain('deployment.apps/proxy serverside-applied (server dry run)')
  expect(lines.filter((line) => line.startsWith('customresourcedefinition'))).toHaveLength(3)
})
