import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startProgram } from '../../harness/program/program.ts'
import { start, type Bench, type Case } from '../bench.ts'
import { judge, median } from '../measure.ts'

const rule = (name: string, policies: object) => ({ name, matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }], policies })
/** Does what the processor of `services.ts` does with a request without a body. */
const PLUGIN = `export default { setup: () => ({ async request(c, next) { c.req.raw.headers.set('x-processed', 'yes'); await next() } }) }`
const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url))

/**
 * The latency that a policy with a callout adds to a request, against a grpc-js call to the same service from the proxy's CPU. Requests are sent one at a time
 * and alternate between the probes, so that other load on the machine affects all of them.
 */
export const callouts: Case = {
  name: 'callouts',
  async run(bench) {
    const program = startProgram({ name: 'services', command: 'taskset', args: ['-c', String(bench.loadCpu), process.execPath, pathOf('../services.ts')] })
    const port = Number((await program.waitForLine(/^listening \d+$/)).split(' ')[1])
    const backendRef = { address: `127.0.0.1:${port}` }
    const descriptors = [{ entries: [{ name: 'path', expression: 'request.path' }] }]
    const processingOptions = { requestBodyMode: 'None', responseHeaderMode: 'Skip', responseBodyMode: 'None', responseTrailerMode: 'Skip' }
    const folder = join(bench.directory, 'ours')
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'plugin.ts'), PLUGIN)
    const pluginAs = (isolation: string): object => ({
      plugins: [{ name: isolation.toLowerCase(), source: { file: 'plugin.ts' }, isolation, limits: { timeout: '50s' } }],
    })
    const ours = await start(bench, 'ours', {
      routes: 10,
      rules: [
        rule('auth', { extAuth: { backendRef, grpc: {} } }),
        rule('limit', { rateLimit: { global: { backendRef, domain: 'unlimited', descriptors } } }),
        rule('process', { extProc: { backendRef, processingOptions } }),
        rule('plugin-worker', pluginAs('Worker')),
        rule('plugin-process', pluginAs('Process')),
      ],
    }).catch(async (error: unknown) => {
      await program.stop()
      throw error
    })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const stdio: ('ignore' | 'inherit' | 'ipc')[] = ['ignore', 'inherit', 'inherit', 'ipc']
    const bare = spawn('taskset', ['-c', String(bench.proxyCpu), process.execPath, pathOf('../grpc-load.ts'), String(port)], { stdio })
    try {
      const [plain, auth, limit, processor, worker, child, call] = await measureInTurn(bench, [
        () => timeRequest(agent, ours.spec.port, '/route-5/x'),
        () => timeRequest(agent, ours.spec.port, '/auth/x'),
        () => timeRequest(agent, ours.spec.port, '/limit/x'),
        () => timeRequest(agent, ours.spec.port, '/process/x'),
        () => timeRequest(agent, ours.spec.port, '/plugin-worker/x'),
        () => timeRequest(agent, ours.spec.port, '/plugin-process/x'),
        async () => {
          bare.send('call')
          const [micros] = (await once(bare, 'message')) as [number]
          return micros
        },
      ] as const)
      const added = (name: string, micros: number) =>
        judge({ case: name, ours: micros - plain, peer: call, peerName: 'a call of grpc-js', unit: 'µs' }, { atMost: 1.3 })
      bench.log(`  time added, µs: extProc, request headers ${(processor - plain).toFixed(0)}`)
      bench.log(`  time added, µs: a plugin that sets the same header, Worker ${(worker - plain).toFixed(0)}, Process ${(child - plain).toFixed(0)}`)
      return [added('extAuth gRPC, time added', auth), added('global rate limit, time added', limit)]
    } finally {
      bare.kill()
      agent.destroy()
      await ours.stop()
      await program.stop()
    }
  },
}

/** Returns the median of each probe, measured for `rounds` times `seconds`. */
async function measureInTurn<T extends readonly (() => Promise<number>)[]>(bench: Bench, probes: T): Promise<{ [K in keyof T]: number }> {
  const samples = probes.map((): number[] => [])
  const warmUpTurns = 2000
  for (let turn = 0, endMs = Infinity; performance.now() < endMs; turn++) {
    if (turn === warmUpTurns) endMs = performance.now() + bench.rounds * bench.seconds * 1000
    for (const [nth, probe] of probes.entries()) {
      const micros = await probe()
      if (turn >= warmUpTurns) samples[nth]?.push(micros)
    }
  }
  const medians = samples.map(median)
  bench.log(`  ${samples[0]?.length} turns, µs: ${medians.map((micros) => micros.toPrecision(4)).join(' | ')}`)
  return medians as { [K in keyof T]: number }
}

/** Duration of a request in microseconds. */
function timeRequest(agent: Agent, port: number, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now()
    const headers = { host: 'bench.test', 'x-user': 'anna' }
    request({ agent, host: '127.0.0.1', port, path, headers }, (response) => {
      response.resume()
      response.on('end', () =>
        response.statusCode === 200 ? resolve((performance.now() - startedAt) * 1000) : reject(new Error(`status ${response.statusCode}`)),
      )
    })
      .on('error', reject)
      .end()
  })
}
