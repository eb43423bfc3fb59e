import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startProbe } from './probe.ts'

/** A probe in a process of its own: what the benchmark and the load do is no part of its waits. */
export interface ProbeProcess {
  /** Wait of the request that waited longest since the last call, in ms; then starts anew. */
  takeLongestPauseMs(): Promise<number>
  /** No request has waited for longer than 20 ms. */
  isIdle(): Promise<boolean>
  /** Responses other than 200, and closed connections. */
  failures(): Promise<number>
  stop(): void
}

type Question = 'take' | 'idle' | 'failures'

/** Starts a process that sends GETs to a path on loopback. */
export async function startProbeProcess(port: number, path: string): Promise<ProbeProcess> {
  const child = fork(fileURLToPath(import.meta.url), [String(port), path], { execArgv: [] })
  await once(child, 'message')
  const ask = async (question: Question): Promise<number> => {
    child.send(question)
    const [answer] = (await once(child, 'message')) as [number]
    return answer
  }
  return {
    takeLongestPauseMs: () => ask('take'),
    isIdle: async () => (await ask('idle')) === 1,
    failures: () => ask('failures'),
    stop: () => void child.kill(),
  }
}

async function runProbe(port: number, path: string): Promise<void> {
  const probe = await startProbe(port, path)
  const answer: Readonly<Record<Question, () => number>> = {
    take() {
      const longest = probe.longestPauseMs()
      probe.resetPause()
      return longest
    },
    idle: () => Number(probe.isIdle()),
    failures: () => probe.failures(),
  }
  process.on('message', (question: Question) => process.send?.(answer[question]()))
  process.send?.('started')
}

const [, program, port, path] = process.argv
if (process.send !== undefined && program === fileURLToPath(import.meta.url) && path !== undefined) await runProbe(Number(port), path)
