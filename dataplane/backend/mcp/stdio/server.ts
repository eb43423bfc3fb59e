import { backoffDelay } from '../../../runtime/backoff.ts'
import { UpstreamError } from '../../../net/upstream/types.ts'
import type { Program, Target } from '../target/target.ts'
import { StdioConnection } from './connection.ts'
import { countProcesses } from './process.ts'
import { makeRoom } from './shares.ts'

/** Processes of one thread, those that are closed included: processes that cannot be killed could become more and more. */
const MAX_PROCESSES = 512
/** Clients whose failures are known. */
const MAX_FAILING = 10_000
const BACKOFF = { initialMs: 500, maxMs: 30_000 }
/** Lines of standard error that are logged in LOG_MS, of all processes of a target. */
const MAX_LOG_LINES = 100
const LOG_MS = 10_000

/** The starts of one client that failed: the process ended before it answered `initialize`. */
interface Failures {
  readonly count: number
  readonly notBeforeMs: number
}

/** The command of a target: starts a process for each session, later after failures, and logs their standard error. */
export class StdioServer {
  readonly #name: string
  readonly #program: Program
  readonly #connections = new Set<StdioConnection>()
  /** By client, the latest last: what one sends may end its processes, and must not delay others. */
  readonly #failures = new Map<string, Failures>()
  #logged = { sinceMs: 0, lines: 0, dropped: 0 }

  constructor(name: string, program: Program) {
    this.#name = name
    this.#program = program
  }

  /** Starts a process for a session of a client. Throws an UpstreamError. */
  start(client: string): StdioConnection {
    const { log, monotonicMs } = this.#program
    const waitMs = (this.#failures.get(client)?.notBeforeMs ?? 0) - monotonicMs()
    if (waitMs > 0) throw new UpstreamError('connect', `${this.#name} failed, and starts again in ${Math.ceil(waitMs)} ms`)
    makeRoom(client)
    if (countProcesses() >= MAX_PROCESSES) throw new UpstreamError('connect', `${this.#name} is not started: ${MAX_PROCESSES} processes have not ended`)
    let isStarted = false
    const connection = new StdioConnection(this.#name, this.#program, client, {
      onLog: (line) => this.#log(line),
      onStarted: () => {
        isStarted = true
        this.#failures.delete(client)
      },
      onExit: (error, isExpected) => {
        this.#connections.delete(connection)
        if (isExpected) return
        const retryMs = isStarted ? 0 : this.#fail(client)
        log?.warn('a process of an MCP server ended', { code: 'PX4035', 'mcp.target': this.#name, error: error.message, retryMs })
      },
    })
    this.#connections.add(connection)
    log?.info('started a process of an MCP server', { 'mcp.target': this.#name })
    return connection
  }

  /** Delays the next start of a client, and returns the delay. */
  #fail(client: string): number {
    const nowMs = this.#program.monotonicMs()
    const { count = 0, notBeforeMs = 0 } = this.#failures.get(client) ?? {}
    // Processes that fail together count once.
    if (nowMs < notBeforeMs) return Math.ceil(notBeforeMs - nowMs)
    const delayMs = backoffDelay(count, BACKOFF)
    this.#failures.delete(client)
    const [oldest] = this.#failures.keys()
    if (oldest !== undefined && this.#failures.size >= MAX_FAILING) this.#failures.delete(oldest)
    this.#failures.set(client, { count: count + 1, notBeforeMs: nowMs + delayMs })
    return delayMs
  }

  /** Ends all processes, and with them their sessions. */
  close(): void {
    for (const connection of this.#connections) connection.close()
  }

  /** The output of a process may be that of a user: it is cut, limited in rate, and cannot write lines of its own. */
  #log(line: string): void {
    const { log, monotonicMs } = this.#program
    if (log === undefined) return
    const nowMs = monotonicMs()
    const logged = this.#logged
    if (nowMs - logged.sinceMs >= LOG_MS) {
      if (logged.dropped > 0) log.info(`${logged.dropped} lines of an MCP server were not logged`, { 'mcp.target': this.#name })
      this.#logged = { sinceMs: nowMs, lines: 1, dropped: 0 }
    } else if (logged.lines >= MAX_LOG_LINES) return void logged.dropped++
    else logged.lines++
    log.info('an MCP server logged', { 'mcp.target': this.#name, stderr: line })
  }
}

const servers = new WeakMap<Program, StdioServer>()

/** The server of a target. */
export function serverOf(name: string, program: Program): StdioServer {
  let server = servers.get(program)
  if (server === undefined) servers.set(program, (server = new StdioServer(name, program)))
  return server
}

/** Ends the processes of programs that are not among the next targets. */
export function endPrograms(previous: readonly Target[], next: readonly Target[]): void {
  for (const { program } of previous) if (program !== undefined && !next.some((target) => target.program === program)) servers.get(program)?.close()
}
