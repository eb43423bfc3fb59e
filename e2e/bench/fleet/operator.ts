import { startProgram, type Program } from '../../harness/program/program.ts'
import { isTrueWithin } from '../../harness/wait.ts'
import { readCpuSeconds, readResidentBytes } from '../proc.ts'

/** Address of the config stream. */
export const STREAM_ADDRESS = '127.0.0.1:9978'
const METRICS = 'http://127.0.0.1:9092/metrics'
const READINESS = 'http://127.0.0.1:9093/readyz'
/** A scrape costs the operator some milliseconds. */
const POLL_MS = 250

/** The operator as a program, against the API server of KUBECONFIG. */
export class OperatorProcess {
  readonly #program: Program
  readonly startedAt = performance.timeOrigin + performance.now()
  #peakBytes = 0
  readonly #sampling: ReturnType<typeof setInterval>

  /** @param entry bundle of the operator */
  constructor(entry: string, profiles: string | undefined) {
    this.#program = startProgram({
      name: 'operator',
      args: [...(profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`]), entry],
      env: { PROXY_DISABLE_LEADER_ELECTION: 'true', PROXY_LOG_LEVEL: 'warn', MALLOC_ARENA_MAX: '1', NODE_ENV: 'production' },
    })
    this.#sampling = setInterval(() => (this.#peakBytes = Math.max(this.#peakBytes, readResidentBytes(this.#program.pid))), 500)
  }

  /** Highest resident set so far. */
  peakBytes(): number {
    return Math.max(this.#peakBytes, readResidentBytes(this.#program.pid))
  }

  cpuSeconds(): number {
    return readCpuSeconds(this.#program.pid)
  }

  /** Number of statuses written since the start; 0 while the operator starts. */
  async statusWrites(): Promise<number> {
    if (this.#program.hasExited()) throw new Error(`the operator exited: ${this.#program.lines.at(-1)?.text ?? ''}`)
    const text = await fetch(METRICS).then(
      (response) => response.text(),
      () => '',
    )
    return Number(/^\S*status_writes_total (\d+)$/m.exec(text)?.[1] ?? 0)
  }

  /** Resolves when the operator is ready and has written no status for a second. */
  async settled(timeoutMs = 600_000): Promise<void> {
    let last = -1
    let since = performance.now()
    const isSettled = async (): Promise<boolean> => {
      if (!(await fetch(READINESS)).ok) return false
      const writes = await this.statusWrites()
      if (writes !== last) since = performance.now()
      last = writes
      return performance.now() - since > 1000
    }
    if (!(await isTrueWithin(timeoutMs, isSettled, POLL_MS))) throw new Error(`not within ${timeoutMs} ms: the operator has written all statuses`)
  }

  /** Resolves when `count` statuses were written since the start. */
  async wrote(count: number, timeoutMs = 600_000): Promise<void> {
    const isWritten = async (): Promise<boolean> => (await this.statusWrites()) >= count
    if (!(await isTrueWithin(timeoutMs, isWritten, POLL_MS))) throw new Error(`not within ${timeoutMs} ms: the operator writes ${count} statuses`)
  }

  async stop(): Promise<void> {
    clearInterval(this.#sampling)
    await this.#program.stop()
  }
}
