import { fileURLToPath } from 'node:url'
import { startProgram } from '../harness/program/program.ts'
import type { Bench } from './bench.ts'
import { readCpuSeconds } from './proc.ts'

/** Streams of server-sent events through a proxy. */
export interface StreamLoad {
  /** Client and server of the streams: plain events, or streamed chat completions. */
  readonly program: 'sse-load.ts' | 'llm-load.ts'
  /** Port on which the load's server listens; the proxy forwards to it. */
  readonly upstreamPort: number
  /** Port to which the load's clients connect. */
  readonly port: number
  /** Process whose CPU time is measured; undefined without a proxy. */
  readonly pid?: number
  readonly streams: number
  readonly eventsPerSecond: number
}

/** Latency of events in milliseconds, and CPU time of the proxy per event; 0 without a proxy. */
export type StreamResult = Record<'p50' | 'p99' | 'cpuMicros', number>

/** Runs streams for the seconds of the benchmark. Rejects if no event was received. */
export async function runStreams(bench: Bench, { program: file, upstreamPort, port, pid, ...load }: StreamLoad): Promise<StreamResult> {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const numbers = [upstreamPort, port, bench.seconds, load.streams, load.eventsPerSecond].map(String)
  const program = startProgram({ name: file, command: 'taskset', args: ['-c', String(bench.loadCpu), process.execPath, path, ...numbers] })
  const cpuSeconds = () => (pid === undefined ? 0 : readCpuSeconds(pid))
  try {
    await program.waitForLine(/^measuring/, 30_000)
    const before = cpuSeconds()
    const { events, p50, p99 } = JSON.parse(await program.waitForLine(/^\{/, (bench.seconds + 30) * 1000)) as Record<'events' | 'p50' | 'p99', number>
    if (events === 0) throw new Error('no events were received')
    return { p50, p99, cpuMicros: ((cpuSeconds() - before) * 1e6) / events }
  } finally {
    await program.stop(100)
  }
}
