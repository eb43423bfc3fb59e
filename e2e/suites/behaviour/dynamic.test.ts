import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { send } from '../../harness/client.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { waitUntil } from '../../harness/wait.ts'
import { findFreePorts } from '../../harness/program/ports.ts'

describe('a dynamicForwardProxy backend', () => {
  let directory: string
  let port = 0
  let upstreamPort = 0
  let podPort = 0
  let peerPort = 0
  let dataplane: Dataplane
  let inPod: Dataplane
  const upstream = createServer((request, response) => response.end(JSON.stringify(request.headers)))

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'dynamic-'))
    ;[port = 0, upstreamPort = 0, podPort = 0, peerPort = 0] = await findFreePorts(4)
    await new Promise<void>((resolve) => upstream.listen(upstreamPort, '127.0.0.1', resolve))
    const start = async (bind: number, env: Record<string, string>): Promise<Dataplane> => {
      const file = join(directory, `${bind}.json`)
      await writeFile(
        file,
        JSON.stringify({ binds: [{ port: bind, listeners: [{ routes: [{ backends: [{ dynamicForwardProxy: { deny: ['*.internal.test'] } }] }] }] }] }),
      )
      return startDataplane({ config: { file }, env })
    }
    dataplane = await start(port, { INSTANCE_IP: '127.0.0.1', PEER_PORT: String(peerPort) })
    inPod = await start(podPort, { KUBERNETES_SERVICE_HOST: '10.0.0.1', LIVENESS_ADDR: '127.0.0.1:0' })
  })
  afterAll(async () => {
    await Promise.all([dataplane?.stop(), inPod?.stop()])
    upstream.close()
    await rm(directory, { recursive: true })
  })

  const ask = (host: string, headers: Record<string, string> = {}, via = port) => send({ port: via, path: '/', headers: { host, ...headers } })

  test('forwards to the host that the request names, and removes forged loop marks', async () => {
    for (const name of ['127.0.0.1', 'localhost']) {
      const response = await ask(`${name}:${upstreamPort}`, { 'x-proxy-loop': 'forged' })
      expect(response.status).toBe(200)
      expect((JSON.parse(response.body) as Record<string, string>)['x-proxy-loop']).toMatch(/^[\w-]{16}\.[\w-]{22}$/)
    }
  })

  test.each(['127.0.0.1', 'localhost', '[::1]', '0.0.0.0', '127.1', '2130706433', '0x7f000001', '[::ffff:127.0.0.1]'])(
    'does not reach the admin port as %s',
    async (name) => {
      const response = await ask(`${name}:${dataplane.ports.admin}`)
      expect([response.status, response.body]).toEqual([403, 'destination not allowed'])
    },
  )

  test('does not reach its own listener, nor its port for replicas', async () => {
    for (const own of [port, peerPort]) {
      const response = await ask(`localhost:${own}`)
      expect([response.status, response.body]).toEqual([403, 'destination not allowed'])
    }
  })

  test('rejects a request that comes back through another program with 508', async () => {
    const first = JSON.parse((await ask(`127.0.0.1:${upstreamPort}`)).body) as Record<string, string>
    const response = await ask(`127.0.0.1:${upstreamPort}`, { 'x-proxy-loop': first['x-proxy-loop'] ?? '' })
    expect([response.status, response.body]).toEqual([508, 'request loop detected'])
  })

  test('does not reach loopback and metadata addresses in a pod', async () => {
    for (const host of [`127.0.0.1:${upstreamPort}`, `localhost:${upstreamPort}`, '169.254.169.254']) expect((await ask(host, {}, podPort)).status).toBe(403)
  })

  test('the log names the destination and the rule', async () => {
    await ask(`localhost:${dataplane.ports.stats}`)
    const find = (): string | undefined => dataplane.program.lines.findLast(({ text }) => text.includes(`http.host=localhost:${dataplane.ports.stats}`))?.text
    await waitUntil('the request is logged', () => find() !== undefined)
    expect(find()).toMatch(/http\.status=403 .*a port of this gateway/)
  })
})
