import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'
import { replaceFile } from '../../harness/files.ts'
import { waitUntil } from '../../harness/wait.ts'

const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })

export default expectations({
  'the upstream never sees the key': async (run) => {
    expect((await run.send(8080, bearer('demo-key-alice'))).json().headers['authorization']).toBeUndefined()
  },
  'other fields of the Secret entry are not accepted as keys': async (run) => {
    for (const key of ['alice', 'sales', 'DEMO-KEY-ALICE', '{"key": "demo-key-alice", "metadata": {"group": "sales"}}']) {
      const response = await run.send(8080, bearer(key))
      expect([key, response.status, response.body]).toEqual([key, 401, 'api key authentication failure: invalid credentials'])
    }
  },
  'a key without metadata is authenticated but not authorized': async (run) => {
    expect((await run.send(8080, bearer('demo-key-monitoring'))).status).toBe(403)
  },
  'a key that was replaced in the Secret is rejected': async (run) => {
    const file = join(run.directory, 'manifests.yaml')
    await replaceFile(file, (await readFile(file, 'utf8')).replace('demo-key-alice', 'demo-key-replaced'))
    await waitUntil('the new key', async () => (await run.send(8080, bearer('demo-key-replaced'))).status === 200)
    expect((await run.send(8080, bearer('demo-key-alice'))).status).toBe(401)
  },
})
