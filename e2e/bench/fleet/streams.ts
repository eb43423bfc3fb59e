import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { waitUntil } from '../../harness/wait.ts'
import type { OpenRequest, SimulatedDataplane, StreamReport } from './stream-process.ts'

const PROGRAM = fileURLToPath(new URL('./stream-process.ts', import.meta.url))
const PROCESSES = 2

/** Simulated data planes in processes of their own, each with an authenticated config stream. */
export class Streams {
  readonly #children: readonly ChildProcess[]
  readonly #seen = new Map<number, number[]>()
  /** Times at which streams got their first config. */
  readonly #served: number[] = []
  #open = 0
  #lastCause = ''

  constructor(address: string, dataplanes: readonly SimulatedDataplane[]) {
    this.#children = Array.from({ length: PROCESSES }, (_, index) => {
      const child = fork(PROGRAM, { execArgv: [] })
      child.on('message', (message) => this.#receive(message as StreamReport))
      const request: OpenRequest = { address, dataplanes: dataplanes.filter((_dataplane, place) => place % PROCESSES === index) }
      child.send(request)
      return child
    })
  }

  #receive(report: StreamReport): void {
    if (report.type === 'served') {
      this.#open += 1
      this.#served.push(report.at)
    } else if (report.type === 'seen') this.#seen.set(report.marker, [...(this.#seen.get(report.marker) ?? []), report.at])
    else {
      this.#lastCause = report.cause
      this.#open = Math.max(0, this.#open - 1)
    }
  }

  /** Starts to count streams anew. To be called while the operator is stopped. */
  reset(): void {
    this.#open = 0
    this.#served.length = 0
  }

  /** Resolves with the time at which `count` streams had their config, in milliseconds since the epoch. */
  async served(count: number, timeoutMs: number): Promise<number> {
    await waitUntil(`${count} streams are served`, () => this.#served.length >= count, timeoutMs).catch((error: Error) => {
      throw new Error(`${error.message}: ${this.#served.length} are; last end of a stream: ${this.#lastCause}`)
    })
    return Math.max(...this.#served)
  }

  /** Resolves with the times at which `count` streams received the text `marker-<marker>`. */
  async seen(marker: number, count: number): Promise<readonly number[]> {
    await waitUntil(`${count} streams receive edit ${marker}`, () => (this.#seen.get(marker)?.length ?? 0) >= count, 30_000)
    const times = this.#seen.get(marker) ?? []
    this.#seen.delete(marker)
    return times
  }

  stop(): void {
    for (const child of this.#children) child.kill()
  }
}
