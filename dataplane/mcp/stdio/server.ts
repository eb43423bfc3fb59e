import { backoffDelay } from '../../runtime/backoff.ts'
import { UpstreamError } from '../../upstream/types.ts'
import type { Program, Target } from '../target/target.ts'
import { StdioConnection } from './connection.ts'
import { countProcesses } from './process.ts'

/** Processes of one thread. */
const MAX_PROCESSES = 128
/** A process that ends sooner has failed. */
const MIN_LIFE_MS = 10_000
const BACKOFF = { initialMs: 500, maxMs: 30_000 }
/** Lines of standard error that are logged in LOG_MS, of all processes of a target. */
const MAX_LOG_LINES = 100
const LOG_MS = 10_000

/** The command of a target: starts a process for each session, later after failures, and logs their standard error. */
export class StdioServer {
  readonly #name: string
  readonly #program: Program
  readonly #connections = new Set<StdioConnection>()
  #failures = 0
  #notBeforeMs = 0
  #logged = { sinceMs: 0, lines: 0, dropped: 0 }

  constructor(name: string, program: Program) {
    this.#name = name
    this.#program = program
  }

  /** Starts a process. Throws an UpstreamError. */
  start(): StdioConnection {
    const { log, monotonicMs } = this.#program
    const startedMs = monotonicMs()
    const waitMs = this.#notBeforeMs - startedMs
    if (waitMs > 0) throw new UpstreamError('connect', `${this.#name} failed, and starts again in ${Math.ceil(waitMs)} ms`)
    if (countProcesses() >= MAX_PROCESSES) throw new UpstreamError('connect', `${this.#name} is not started: ${MAX_PROCESSES} processes run`)
    const connection = new StdioConnection(this.#name, this.#program, {
      onLog: (line) => this.#log(line),
      onExit: (error, isExpected) => {
        this.#connections.delete(connection)
        if (isExpected) return
        const nowMs = monotonicMs()
        if (nowMs - startedMs >= MIN_LIFE_MS) this.#failures = 0
        // Processes that fail together count once.
        if (nowMs >= this.#notBeforeMs) this.#notBeforeMs = nowMs + backoffDelay(this.#failures++, BACKOFF)
        log?.warn('a process of an MCP server ended', {
          code: 'PX4035',
          'mcp.target': this.#name,
          error: error.message,
          retryMs: Math.ceil(this.#notBeforeMs - nowMs),
        })
      },
    })
    this.#connections.add(connection)
    log?.info('started a process of an MCP server', { 'mcp.target': this.#name })
    return connection
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
