import { findFreePort } from '../../harness/program/ports.ts'
import { alternate, start, type Case, type StartedProxy } from '../bench.ts'
import { judge, judgeLimit } from '../measure.ts'
import { runStreams } from '../streams.ts'

const LIMIT_MS = 2
const FEW = { program: 'sse-load.ts', streams: 100, eventsPerSecond: 20 } as const
const MANY = { program: 'sse-load.ts', streams: 200, eventsPerSecond: 25 } as const

/** Server-sent events: added p99 latency compared with no proxy, and CPU time of an event compared with nginx. */
export const sse: Case = {
  name: 'sse',
  async run(bench) {
    const upstreamPort = await findFreePort()
    const ours = await start(bench, bench.ours, { routes: 10, upstreamPort })
    const peer = await start(bench, 'nginx', { routes: 10, upstreamPort, isStreaming: true })
    const added = async ({ spec }: StartedProxy) => {
      const direct = await runStreams(bench, { ...FEW, upstreamPort, port: upstreamPort })
      const proxied = await runStreams(bench, { ...FEW, upstreamPort, port: spec.port })
      return { added: Math.max(0, proxied.p99 - direct.p99), direct: direct.p99 }
    }
    const costs = async ({ pid, spec }: StartedProxy) => runStreams(bench, { ...MANY, upstreamPort, port: spec.port, pid })
    try {
      const latency = await alternate(
        bench,
        () => added(ours),
        () => added(peer),
      )
      const cpu = await alternate(
        bench,
        () => costs(ours),
        () => costs(peer),
      )
      return [
        judgeLimit('SSE, added p99 per event', latency.a.added, LIMIT_MS, 'ms'),
        judge({ case: 'SSE, added p99 per event, nginx', ours: latency.a.added, peer: latency.b.added, peerName: 'nginx', unit: 'ms' }, {}),
        judge(
          { case: 'SSE, CPU', ours: cpu.a.cpuMicros, peer: cpu.b.cpuMicros, ratio: cpu.ratio.cpuMicros, peerName: 'nginx', unit: 'µs CPU/event' },
          { atMost: 1.45 },
        ),
      ]
    } finally {
      await ours.stop()
      await peer.stop()
    }
  },
}
