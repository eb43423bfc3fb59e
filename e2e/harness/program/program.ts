import { spawn } from 'node:child_process'

export interface ProgramOptions {
  /** Name for messages. */
  readonly name: string
  readonly command?: string
  readonly args: readonly string[]
  /** Additions to the environment of this process; undefined removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
}

interface ProgramExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A running program. Keeps the last 5,000 lines of standard output and standard error. */
export interface Program {
  readonly name: string
  readonly pid: number
  readonly lines: readonly Line[]
  readonly exited: Promise<ProgramExit>
  readonly hasExited: () => boolean
  onLine(listener: (line: Line) => void): void
  /** Returns the first line, past or future, that matches the pattern. Rejects if the program exits first or after `timeoutMs`. */
  waitForLine(pattern: RegExp, timeoutMs?: number): Promise<string>
  signal(signal: NodeJS.Signals): void
  /** Sends SIGTERM, then SIGKILL to the process group after `graceMs`. */
  stop(graceMs?: number): Promise<ProgramExit>
}

/** A line of output with its stream. */
export interface Line {
  readonly stream: 'stdout' | 'stderr'
  readonly text: string
}

const KEPT_LINES = 5000
const running = new Set<number>()
// When this process exits, programs must not keep running. Each has its own process group, which includes its children.
process.on('exit', () => {
  for (const pid of running) killGroup(pid, 'SIGKILL')
})

/** Starts a program in its own process group. */
export function startProgram(options: ProgramOptions): Program {
  const env = { ...process.env, ...options.env }
  // Do not pass on settings of the test runner.
  delete env['NODE_OPTIONS']
  for (const [key, value] of Object.entries(options.env ?? {})) if (value === undefined) delete env[key]
  const child = spawn(options.command ?? process.execPath, [...options.args], {
    env,
    cwd: options.cwd,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: Line[] = []
  const listeners = new Set<(line: Line) => void>()
  const receive = (line: Line) => {
    lines.push(line)
    if (lines.length > KEPT_LINES) lines.shift()
    for (const listener of listeners) listener(line)
  }
  for (const stream of ['stdout', 'stderr'] as const) readLines(child[stream], (text) => receive({ stream, text }))

  let exit: ProgramExit | undefined
  const exited = new Promise<ProgramExit>((resolve) => {
    const finish = (code: number | null, signal: NodeJS.Signals | null) => {
      exit = { code, signal }
      if (child.pid !== undefined) running.delete(child.pid)
      resolve(exit)
    }
    child.once('error', (error) => {
      receive({ stream: 'stderr', text: error.message })
      finish(127, null)
    })
    // `close` is emitted after the last line was read; `exit` may be emitted earlier.
    child.once('close', finish)
  })
  const pid = child.pid ?? -1
  if (pid > 0) running.add(pid)

  return {
    name: options.name,
    pid,
    lines,
    exited,
    hasExited: () => exit !== undefined,
    onLine: (listener) => void listeners.add(listener),
    waitForLine(pattern, timeoutMs = 60_000) {
      const past = lines.find((line) => pattern.test(line.text))
      if (past !== undefined) return Promise.resolve(past.text)
      return new Promise<string>((resolve, reject) => {
        const done = () => {
          clearTimeout(timer)
          listeners.delete(listen)
        }
        const listen = (line: Line) => {
          if (!pattern.test(line.text)) return
          done()
          resolve(line.text)
        }
        const timer = setTimeout(() => {
          done()
          reject(new Error(`${options.name} printed no line that matches ${pattern} within ${timeoutMs} ms\n${tailOf(lines)}`))
        }, timeoutMs)
        listeners.add(listen)
        void exited.then(() => {
          done()
          reject(new Error(`${options.name} exited before it printed a line that matches ${pattern}\n${tailOf(lines)}`))
        })
      })
    },
    signal: (signal) => void child.kill(signal),
    async stop(graceMs = 5000) {
      if (exit !== undefined) return exit
      child.kill('SIGTERM')
      const timer = setTimeout(() => killGroup(pid, 'SIGKILL'), graceMs)
      const result = await exited
      clearTimeout(timer)
      killGroup(pid, 'SIGKILL')
      return result
    },
  }
}

/** The last lines that a program printed, for error messages. */
export function tailOf(lines: readonly Line[], count = 20): string {
  return lines
    .slice(-count)
    .map((line) => `  ${line.text}`)
    .join('\n')
}

function readLines(stream: NodeJS.ReadableStream, receive: (text: string) => void): void {
  let rest = ''
  stream.setEncoding('utf8')
  stream.on('data', (chunk: string) => {
    const parts = (rest + chunk).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) receive(part)
  })
  stream.on('end', () => {
    if (rest !== '') receive(rest)
  })
}

function killGroup(pid: number, signal: NodeJS.Signals): void {
  if (pid <= 0) return
  try {
    process.kill(-pid, signal)
  } catch {
    // The group no longer exists.
  }
}
