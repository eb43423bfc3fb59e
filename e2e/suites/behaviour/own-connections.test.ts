import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { send } from '../../harness/client.ts'
import { startDataplane } from '../../harness/program/dataplane.ts'
import { findFreePort, findFreePorts } from '../../harness/program/ports.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'own-connections-'))
})
afterAll(() => rm(directory, { recursive: true }))

// The endpoint of a container's credentials is a setting of the process: no rule of addresses judges connections to it.
test.each([
  ['admin', '/config_dump', 1],
  ['stats', '/metrics', 1],
  ['readiness', '/healthz/ready', 1],
  ['admin', '/config_dump', 2],
] as const)('the data plane does not answer itself on its port for %s: %s, workers: %d', async (endpoint, path, workers) => {
  const [admin = 0, stats = 0, readiness = 0] = await findFreePorts(3)
  const ports = { admin, stats, readiness }
  const listener = await findFreePort()
  const url = `http://127.0.0.1:${ports[endpoint]}${path}`
  const file = join(directory, 'config.json')
  const backend = { ai: { provider: { bedrock: { region: 'eu-west-1', model: 'm' }, host: '127.0.0.1', port: 9 } }, policies: { auth: { aws: {} } } }
  await writeFile(file, JSON.stringify({ binds: [{ port: listener, listeners: [{ routes: [{ name: 'signed', backends: [backend] }] }] }] }))
  const env = { WORKERS: String(workers), AWS_CONTAINER_CREDENTIALS_FULL_URI: url }
  const dataplane = await startDataplane({ config: { file }, ports, env })
  try {
    const body = '{"messages":[{"role":"user","content":"hi"}]}'
    const response = await send({ port: listener, method: 'POST', path: '/v1/chat/completions', body })
    expect([response.status, response.body]).toEqual([500, expect.stringContaining("the container's credential endpoint cannot be reached")])
    // Other programs of this machine are answered.
    expect((await fetch(url)).status).toBe(200)
  } finally {
    await dataplane.stop(0)
  }
})
