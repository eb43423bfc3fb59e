import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from '@jest/globals'
import { waitUntil } from '../../harness/wait.ts'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

/** Sends requests of a tenant until one has the header of a version. All must succeed. */
async function untilServedBy(run: ExampleRun, version: string): Promise<void> {
  const deadline = Date.now() + 60_000
  for (;;) {
    const { status, headers } = await run.send(8080, { headers: { 'x-tenant': 'a' } })
    expect(status).toBe(200)
    if (headers['x-served-by'] === version) return
    if (Date.now() > deadline) throw new Error(`${version} is not in force`)
  }
}

export default expectations({
  'unknown tenants get the response of the plugin, and known ones pass': async (run) => {
    const before = run.upstream('app').requests.length
    expect(await run.send(8080, { headers: { 'x-tenant': 'c' } })).toMatchObject({ status: 403, body: '{"error":"unknown tenant"}' })
    expect(run.upstream('app').requests.length).toBe(before)
    expect(await run.send(8080, { headers: { 'x-tenant': 'b' } })).toMatchObject({ status: 200, headers: { 'x-served-by': 'version-1' } })
  },
  'an edit is in force without a lost request': async (run) => {
    const file = join(run.directory, 'manifests.yaml')
    const text = await readFile(file, 'utf8')
    await untilServedBy(run, 'version-1')
    await writeFile(file, text.replace('version-1', 'version-2'))
    await untilServedBy(run, 'version-2')
    await writeFile(file, text)
    await untilServedBy(run, 'version-1')
  },
  'a version that data planes cannot load is in the status of the policy with its line, and the one before stays': async (run) => {
    const file = join(run.directory, 'manifests.yaml')
    const text = await readFile(file, 'utf8')
    const accepted = () => run.conditions().findLast(({ kind, type }) => kind === 'ProxyPolicy' && type === 'Accepted')?.message ?? ''
    await writeFile(file, text.replace(/tenants:\s+(\[.*\]|- a\s+- b)/, 'tenants: 3'))
    await waitUntil('the config in the status', () => /plugin tenants cannot be loaded.*: config\.tenants must be array, is 3 \[PX1342\]/.test(accepted()))
    await untilServedBy(run, 'version-1')
    await writeFile(file, text.replace('export default', 'export default nowhere &&'))
    await waitUntil('the line in the status', () => /index\.ts:\d+:\d+: ReferenceError: nowhere is not defined \[PX1342\]/.test(accepted()))
    await untilServedBy(run, 'version-1')
    await writeFile(file, text)
    await untilServedBy(run, 'version-1')
  },
})
