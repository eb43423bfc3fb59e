import { fileURLToPath } from 'node:url'
import { findFreePort } from '../../harness/program/ports.ts'
import { startProgram } from '../../harness/program/program.ts'
import { alternate, start, type Bench, type Case } from '../bench.ts'
import { judge, judgeLimit } from '../measure.ts'

const LOAD = fileURLToPath(new URL('../sse-load.ts', import.meta.url))
const LIMIT_MS = 2

/** 100 streams of server-sent events: added p99 latency compared with no proxy. */
export const sse: Case = {
  name: 'sse',
  async run(bench) {
    const upstreamPort = await findFreePort()
    const ours = await start(bench, bench.ours, { routes: 10, upstreamPort })
    const peer = await start(bench, 'nginx', { routes: 10, upstreamPort, isStreaming: true })
    try {
      const added = async (port: number) => {
        const direct = await relay(bench, upstreamPort, upstreamPort)
        const proxied = await relay(bench, upstreamPort, port)
        return { added: Math.max(0, proxied.p99 - direct.p99), direct: direct.p99 }
      }
      const { a, b } = await alternate(
        bench,
        () => added(ours.spec.port),
        () => added(peer.spec.port),
      )
      return [
        judgeLimit('SSE, added p99 per event', a.added, LIMIT_MS, 'ms'),
        judge({ case: 'SSE, added p99 per event, nginx', ours: a.added, peer: b.added, peerName: 'nginx', unit: 'ms' }, {}),
      ]
    } finally {
      await ours.stop()
      await peer.stop()
    }
  },
}

async function relay(bench: Bench, upstreamPort: number, port: number): Promise<{ p50: number; p99: number }> {
  const program = startProgram({
    name: 'sse load',
    command: 'taskset',
    args: ['-c', String(bench.loadCpu), process.execPath, LOAD, String(upstreamPort), String(port), String(bench.seconds)],
  })
  try {
    return JSON.parse(await program.waitForLine(/^\{/, (bench.seconds + 20) * 1000)) as { p50: number; p99: number }
  } finally {
    await program.stop()
  }
}
