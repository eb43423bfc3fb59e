import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'
import { replaceFile } from '../../harness/files.ts'
import { waitUntil } from '../../harness/wait.ts'

export default expectations({
  'a reference without a grant never reaches the upstream, and the operator reports why': async (run) => {
    expect((await run.send(8080, { path: '/orders' })).status).toBe(500)
    expect(run.upstream('orders').requests).toEqual([])
    expect(run.conditions()).toContainEqual(expect.objectContaining({ kind: 'HTTPRoute', namespace: 'web', type: 'ResolvedRefs', reason: 'RefNotPermitted' }))
  },
  'removing the grant stops traffic, and restoring it resumes traffic': async (run) => {
    const file = join(run.directory, 'manifests.yaml')
    const granted = await readFile(file, 'utf8')
    const statusOf = async () => (await run.send(8080, { path: '/catalog' })).status
    await replaceFile(
      file,
      granted
        .replace('name: catalog-for-web', 'name: catalog-for-nobody')
        .replace('kind: HTTPRoute\n      namespace: web', 'kind: HTTPRoute\n      namespace: nobody'),
    )
    await waitUntil('500 without the grant', async () => (await statusOf()) === 500)
    await replaceFile(file, granted)
    await waitUntil('200 with the grant', async () => (await statusOf()) === 200)
  },
})
