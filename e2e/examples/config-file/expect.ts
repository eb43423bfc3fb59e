import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from '@jest/globals'
import { sendRaw } from '../../harness/client.ts'
import { expectations } from '../../harness/example/expectations.ts'
import { replaceFile } from '../../harness/files.ts'
import { waitUntil } from '../../harness/wait.ts'

export default expectations({
  'a route applies its filters, weights and retries': async (run) => {
    const responses = await Promise.all(Array.from({ length: 40 }, () => run.send(8080, { path: '/api/x' })))
    const names = new Set(responses.map((response) => response.json().name))
    // One request of four goes to the second backend; forty requests may not reach it.
    while (names.size < 2) names.add((await run.send(8080, { path: '/api/x' })).json().name)
    expect(names).toEqual(new Set(['first', 'second']))
    expect(new Set(responses.map((response) => response.headers['x-route']))).toEqual(new Set(['api']))
    expect((await run.send(8080, { path: '/api/x?failures=1&id=file' })).status).toBe(200)
  },
  TCP: async (run) => {
    expect(await sendRaw(run.port(8090), 'hi', { end: true })).toBe('bytes\nhi')
  },
  'an edit takes effect, and an invalid edit changes nothing': async (run) => {
    const file = join(run.directory, 'config.yaml')
    const text = await readFile(file, 'utf8')
    const routeOf = async () => (await run.send(8080, { path: '/api/x' })).headers['x-route']
    await replaceFile(file, text.replace('value: api', 'value: edited'))
    await waitUntil('the edited header', async () => (await routeOf()) === 'edited')
    await replaceFile(file, text.replace('value: api', 'valu: broken'))
    await run.dataplane.program.waitForLine(/valu/)
    expect(await routeOf()).toBe('edited')
    await replaceFile(file, text)
    await waitUntil('the original header', async () => (await routeOf()) === 'api')
  },
})
