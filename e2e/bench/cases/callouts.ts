import { fileURLToPath } from 'node:url'
import { Agent, request } from 'node:http'
import { create } from '@bufbuild/protobuf'
import { Client, credentials } from '@grpc/grpc-js'
import { Authorization, CheckRequestSchema, type CheckRequest } from '#gen/proto/envoy/service/auth/v3/external_auth_pb.js'
import { definitionOf } from '../../harness/services.ts'
import { startProgram } from '../../harness/program.ts'
import { alternate, start, type Bench, type Case } from '../bench.ts'
import { judge, median } from '../measure.ts'

const rule = (name: string, policies: object) => ({ name, matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }], policies })

/** What a policy that calls out adds to the time of a request, against a call of grpc-js to the same service; one at a time. */
export const callouts: Case = {
  name: 'callouts',
  async run(bench) {
    const program = startProgram({
      name: 'services',
      command: 'taskset',
      args: ['-c', String(bench.loadCpu), process.execPath, fileURLToPath(new URL('../services.ts', import.meta.url))],
    })
    const port = Number((await program.waitForLine(/^listening \d+$/)).split(' ')[1])
    const backendRef = { address: `127.0.0.1:${port}` }
    const descriptors = [{ entries: [{ name: 'path', expression: 'request.path' }] }]
    const ours = await start(bench, 'ours', {
      routes: 10,
      rules: [rule('auth', { extAuth: { backendRef, grpc: {} } }), rule('limit', { rateLimit: { global: { backendRef, domain: 'unlimited', descriptors } } })],
    })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
    const get = (path: string) => () => ask(agent, ours.spec.port, path)
    try {
      const measure = (path: string) =>
        alternate(
          bench,
          async () => ({ micros: (await medianMicros(bench, get(`/${path}/x`))) - (await medianMicros(bench, get('/route-5/x'))) }),
          async () => ({ micros: await medianMicros(bench, () => check(client)) }),
        )
      const judged = (name: string, { a, b }: Awaited<ReturnType<typeof measure>>) =>
        judge({ case: name, ours: a.micros, peer: b.micros, peerName: 'a call of grpc-js', unit: 'µs' }, { atMost: 1.3 })
      return [judged('extAuth gRPC, time added', await measure('auth')), judged('global rate limit, time added', await measure('limit'))]
    } finally {
      client.close()
      agent.destroy()
      await ours.stop()
      await program.stop()
    }
  },
}

async function medianMicros(bench: Bench, once: () => Promise<void>): Promise<number> {
  const times: number[] = []
  for (let nth = 0; nth < 50; nth++) await once()
  for (const endMs = performance.now() + (bench.seconds * 1000) / 3; performance.now() < endMs;) {
    const startedAt = performance.now()
    await once()
    times.push((performance.now() - startedAt) * 1000)
  }
  return median(times)
}

function ask(agent: Agent, port: number, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'bench.test', 'x-user': 'anna' }
    request({ agent, host: '127.0.0.1', port, path, headers }, (response) => {
      response.resume()
      response.on('end', () => (response.statusCode === 200 ? resolve() : reject(new Error(`status ${response.statusCode}`))))
    })
      .on('error', reject)
      .end()
  })
}

const definition = definitionOf(Authorization.method.check)
const question: CheckRequest = create(CheckRequestSchema, {
  attributes: {
    request: { http: { method: 'GET', path: '/auth/x', host: 'bench.test', headers: { 'x-user': 'anna', ':method': 'GET', ':path': '/auth/x' } } },
  },
})

function check(client: Client): Promise<void> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(definition.path, definition.requestSerialize, definition.responseDeserialize, question, (error) =>
      error === null ? resolve() : reject(error),
    )
  })
}
