import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findFreePort } from '../../harness/program/ports.ts'
import { buildCollector, startCollector } from '../../suites/telemetry/collector.ts'
import { alternate, type Bench, type Case, type StartedProxy } from '../bench.ts'
import { judge } from '../measure.ts'
import { wrk } from './throughput.ts'
import { startLogging } from '../logging-proxy.ts'

const GATEWAY = { kind: 'Gateway', namespace: 'default', name: 'proxy' } as const

interface TelemetryKinds {
  /** Writes a JSON access log to a file. */
  readonly hasLog?: boolean
  /** Port of a collector that receives a span of every request. */
  readonly collectorPort?: number
}

/** Starts a data plane with these kinds of telemetry; metrics are always on. */
async function startWithTelemetry(bench: Bench, name: string, { hasLog = false, collectorPort }: TelemetryKinds): Promise<StartedProxy> {
  const port = await findFreePort()
  const spec = { port, http2Port: port, upstreamPort: bench.upstreamPort, routes: 1 }
  const directory = join(bench.directory, `telemetry-${name}`)
  mkdirSync(directory, { recursive: true })
  const file = join(directory, 'config.yaml')
  const tracing = { backendRef: { address: `127.0.0.1:${collectorPort}` }, randomSampling: 'true' }
  const policy = {
    key: 'frontend/default/bench:0',
    policy: { kind: 'ProxyPolicy', namespace: 'default', name: 'bench' },
    target: GATEWAY,
    frontend: { tracing },
  }
  const config = {
    config: { logging: { format: 'json' } },
    binds: [{ port, listeners: [{ name: 'http', routes: [{ name: 'all', backends: [{ host: `127.0.0.1:${bench.upstreamPort}` }] }] }] }],
    ...(collectorPort === undefined ? {} : { policies: [policy] }),
  }
  writeFileSync(file, JSON.stringify(config))
  const dataplane = await startLogging(bench, { file, log: join(directory, 'access.log'), hasLog })
  return { pid: dataplane.program.pid, spec, stop: () => dataplane.stop() }
}

/** The cost of telemetry compared with metrics only: each kind alone, then all kinds with every request traced to a collector. */
export const telemetry: Case = {
  name: 'telemetry',
  async run(bench) {
    const ports = { grpc: await findFreePort(), http: await findFreePort() }
    mkdirSync(bench.directory, { recursive: true })
    const collector = await startCollector(await buildCollector(), bench.directory, ports, false)
    const bare = await startWithTelemetry(bench, 'bare', {})
    const kinds = [
      ['JSON access log', await startWithTelemetry(bench, 'log', { hasLog: true })],
      ['tracing', await startWithTelemetry(bench, 'tracing', { collectorPort: ports.grpc })],
      ['log and tracing', await startWithTelemetry(bench, 'all', { hasLog: true, collectorPort: ports.grpc })],
    ] as const
    try {
      const results = []
      for (const [name, proxy] of kinds) {
        const { a, b } = await alternate(
          bench,
          () => wrk(bench, proxy, '/x'),
          () => wrk(bench, bare, '/x'),
        )
        const isAll = name === 'log and tracing'
        const peerName = 'ours, bare'
        // The collector shares its CPU with the load generator, so the rate includes its cost; the CPU time of the proxy does not.
        results.push(judge({ case: `telemetry, ${name}`, ours: a.rate, peer: b.rate, peerName, unit: 'requests/s' }, isAll ? { atLeast: 0.75 } : {}))
        results.push(
          judge({ case: `telemetry, ${name}, CPU`, ours: a.cpuMicros, peer: b.cpuMicros, peerName, unit: 'µs CPU/request' }, isAll ? { atMost: 1.33 } : {}),
        )
      }
      return results
    } finally {
      for (const proxy of [bare, ...kinds.map(([, one]) => one)]) await proxy.stop()
      await collector.stop()
    }
  },
}
