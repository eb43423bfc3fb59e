import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { createBodyHold } from '../../../request/exchange/held.ts'
import { UpstreamError } from '../../../net/upstream/types.ts'
import { MAX_EVENT_CHARS } from '../sse/parser.ts'

/** A program with its arguments and its whole environment. */
export interface Command {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** Receives the output of a process. Exactly one `onExit` is the last call. */
export interface ProcessSink {
  /** A line of the standard output, without its end. */
  onLine(line: string): void
  /** A line of the standard error, cut to MAX_STDERR_CHARS. */
  onLog(line: string): void
  /** `reason` names status or signal, or why the process was not started or was ended. */
  onExit(error: UpstreamError): void
}

/** Bytes that wait for the process to read them. Further messages fail. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024
const MAX_STDERR_CHARS = 1000
/** Time after the end of its input that a process may exit in, and after SIGTERM. */
const GRACE = { inputMs: 2000, termMs: 2000 }

const POLL_MS = 20

/** Processes that end when they were closed, beyond which the oldest of them is killed at once. */
const MAX_CLOSING = 128

/** Processes of this thread that run. */
const running = new Set<ServerProcess>()
/** Those of them that were closed and not killed, in that order. */
const closing = new Set<ServerProcess>()

export const countProcesses = (): number => running.size

/**
 * A process in a group of its own. Output is parsed in lines. It is started without a shell, and its environment is that of the command only.
 * The whole group ends with it.
 */
export class ServerProcess {
  /** Rejects with an UpstreamError if the program cannot be started. */
  readonly started: Promise<void>
  readonly #child: ChildProcessWithoutNullStreams
  readonly #sink: ProcessSink
  readonly #hold = createBodyHold()
  #line: Buffer[] = []
  #lineBytes = 0
  #error: UpstreamError | undefined
  #isOver = false
  #timer: NodeJS.Timeout | undefined

  constructor({ command, env }: Command, sink: ProcessSink) {
    const [program = '', ...args] = command
    this.#sink = sink
    try {
      this.#child = spawn(program, args, { env: { ...env }, stdio: 'pipe', detached: true, shell: false })
    } catch (error) {
      throw new UpstreamError('connect', `${program} cannot be started: ${error instanceof Error ? error.message : String(error)}`, error)
    }
    if (running.size === 0) process.on('exit', killAll)
    running.add(this)
    const { stdin, stdout, stderr } = this.#child
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.started = promise
    promise.catch(() => undefined)
    this.#child.on('spawn', resolve)
    this.#child.on('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'ENOENT' ? 'no such program; write its absolute path, or set PATH in env' : error.message
      const failure = new UpstreamError('connect', `${program}: ${why}`, error)
      reject(failure)
      this.#end(failure)
    })
    this.#child.on('exit', (code, signal) => this.#end(new UpstreamError('reset', `the process ended with ${signal ?? `status ${code ?? ''}`}`)))
    stdin.on('error', () => undefined)
    stdout.on('data', (chunk: Buffer) => this.#read(chunk))
    stdout.on('error', () => undefined)
    readLog(stderr, (line) => sink.onLog(line))
  }

  /** Sends a line. Throws an UpstreamError. */
  write(line: string): void {
    const { stdin } = this.#child
    if (this.#isOver || !stdin.writable) throw this.#error ?? new UpstreamError('reset', 'the process reads no more messages')
    if (stdin.writableLength > MAX_WAITING_BYTES)
      throw new UpstreamError('reset', `the process does not read its input, and ${stdin.writableLength} bytes wait`)
    stdin.write(`${line}\n`)
  }

  /** Ends the process: its input ends, then SIGTERM, then SIGKILL follow for the group. */
  close(error: UpstreamError): void {
    if (this.#isOver || this.#error !== undefined) return
    this.#error = error
    closing.add(this)
    const [oldest] = closing
    if (closing.size > MAX_CLOSING) oldest?.kill(error)
    this.#child.stdin.end()
    this.#timer = setTimeout(() => {
      this.#signal('SIGTERM')
      this.#timer = setTimeout(() => this.#signal('SIGKILL'), GRACE.termMs).unref()
    }, GRACE.inputMs).unref()
  }

  /** Ends the group at once. */
  kill(error: UpstreamError): void {
    this.#error ??= error
    closing.delete(this)
    clearTimeout(this.#timer)
    this.#signal('SIGKILL')
  }

  #read(chunk: Buffer): void {
    let rest = chunk
    for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
      this.#line.push(rest.subarray(0, end))
      rest = rest.subarray(end + 1)
      const line = Buffer.concat(this.#line).toString()
      this.#line = []
      this.#lineBytes = 0
      if (this.#error === undefined && line.trim() !== '') this.#sink.onLine(line)
    }
    if (rest.length > 0) this.#line.push(rest)
    this.#lineBytes += rest.length
    const exceeded =
      this.#lineBytes > MAX_EVENT_CHARS ? new UpstreamError('protocol', `the process wrote a line of more than ${MAX_EVENT_CHARS} bytes`) : undefined
    const error = exceeded ?? this.#hold.resize(this.#lineBytes)
    if (error === undefined) return
    this.#line = []
    this.#lineBytes = 0
    this.kill(error instanceof UpstreamError ? error : new UpstreamError('reset', 'the output of the process exceeds the budget of buffered bodies', error))
  }

  #end(error: UpstreamError): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    running.delete(this)
    closing.delete(this)
    if (running.size === 0) process.off('exit', killAll)
    this.#hold.release()
    // Its children would run on.
    this.#signal('SIGKILL')
    this.#sink.onExit(this.#error ?? error)
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    if (pid === undefined) return
    try {
      process.kill(-pid, signal)
    } catch {
      // The group has ended.
    }
  }
}

const shutdownError = (): UpstreamError => new UpstreamError('cancelled', 'the gateway is shutting down')

function killAll(): void {
  for (const each of running) each.kill(shutdownError())
}

/** Ends all processes of this thread: those that do not exit when their input ends are killed after 2 s. */
export async function endProcesses(): Promise<void> {
  for (const each of running) each.close(shutdownError())
  const deadline = performance.now() + GRACE.inputMs
  while (running.size > 0 && performance.now() < deadline) await sleep(POLL_MS)
  killAll()
}

/** Lines of text, each cut. The rest of a long line is dropped. */
function readLog(stream: NodeJS.ReadableStream, onLine: (line: string) => void): void {
  let line = ''
  const decoder = new TextDecoder()
  stream.on('data', (chunk: Buffer) => {
    const parts = decoder.decode(chunk, { stream: true }).split(/\r?\n/)
    for (const [index, part] of parts.entries()) {
      if (line.length < MAX_STDERR_CHARS) line += part.slice(0, MAX_STDERR_CHARS - line.length)
      if (index === parts.length - 1) break
      if (line !== '') onLine(line)
      line = ''
    }
  })
  stream.on('end', () => {
    if (line !== '') onLine(line)
    line = ''
  })
  stream.on('error', () => undefined)
}
