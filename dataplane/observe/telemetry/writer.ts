import { closeSync, constants, fstatSync, openSync, write, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { isatty } from 'node:tty'

/** Accepts complete lines and never waits for the reader. */
export interface LineWriter {
  /** Writes a line, or several. Returns false if they were dropped because the reader has stopped reading. */
  write(line: string): boolean
  /** Resolves when everything written so far has left the process, or after a second of no progress. */
  flush(): Promise<void>
  /** Writes the waiting lines synchronously; for `process.on('exit')`. */
  flushSync(): void
  /** Lines dropped since the start. */
  readonly dropped: number
}

export interface WriterOptions {
  /** Milliseconds that a line waits at most; default 100. */
  flushMs?: number
  /** Waiting characters at which lines are written; default 32 Ki. */
  flushSize?: number
  /** Maximum of waiting characters; lines beyond it are dropped and counted. Default 4 Mi. */
  maxSize?: number
}

const BLOCKED_RETRY_MS = 20
const FLUSH_PATIENCE_MS = 1000

/** Creates a writer that batches lines and writes one batch at a time, without ever blocking. */
export const createWriter = (fd: number, options: WriterOptions = {}): LineWriter => new BatchWriter(openSink(fd), options)

class BatchWriter implements LineWriter {
  readonly #sink: Sink
  readonly #flushMs: number
  readonly #flushSize: number
  readonly #maxSize: number
  #waiting = ''
  #dropped = 0
  #isWriting = false
  #timer: NodeJS.Timeout | undefined
  #waiters: (() => void)[] = []

  constructor(sink: Sink, { flushMs = 100, flushSize = 32 * 1024, maxSize = 4 * 1024 * 1024 }: WriterOptions) {
    this.#sink = sink
    this.#flushMs = flushMs
    this.#flushSize = flushSize
    this.#maxSize = maxSize
  }

  get dropped(): number {
    return this.#dropped
  }

  write(line: string): boolean {
    if (this.#waiting.length + line.length > this.#maxSize) {
      this.#dropped += line.split('\n').length - 1
      return false
    }
    this.#waiting += line
    if (this.#waiting.length >= this.#flushSize && !this.#isWriting) this.#pump()
    else this.#timer ??= setTimeout(() => this.#onTimer(), this.#flushMs).unref()
    return true
  }

  flush(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiters.push(resolve)
    const patience = setTimeout(resolve, FLUSH_PATIENCE_MS)
    this.#pump()
    return promise.finally(() => clearTimeout(patience))
  }

  flushSync(): void {
    // A write in flight is finished by its thread; only the lines after it are written here.
    let rest = Buffer.from(this.#waiting)
    this.#waiting = ''
    try {
      while (rest.length > 0) rest = rest.subarray(writeSync(this.#sink.fd, rest))
    } catch {
      this.#dropped += countLines(rest)
    }
  }

  #onTimer(): void {
    this.#timer = undefined
    this.#pump()
  }

  /** Writes all waiting lines, or resolves `flush` if there are none. */
  #pump(): void {
    if (this.#isWriting) return
    if (this.#waiting === '') {
      for (const resolve of this.#waiters.splice(0)) resolve()
      return
    }
    const batch = Buffer.from(this.#waiting)
    this.#waiting = ''
    this.#isWriting = true
    this.#send(batch)
  }

  #send(chunk: Buffer): void {
    this.#sink.write(chunk, (error, written) => {
      if (error?.code === 'EAGAIN') {
        setTimeout(() => this.#send(chunk), BLOCKED_RETRY_MS).unref()
        return
      }
      // Standard output is broken (EPIPE), so the error cannot be logged: the lines count as dropped.
      if (error) this.#dropped += countLines(chunk)
      else if (written < chunk.length) {
        this.#send(chunk.subarray(written))
        return
      }
      this.#isWriting = false
      // Less than a batch waits for its timer: a write of few lines costs as much as one of many.
      if (this.#waiting.length >= this.#flushSize || this.#waiters.length > 0 || this.#timer === undefined) this.#pump()
    })
  }
}

function countLines(chunk: Buffer): number {
  let lines = 0
  for (let i = chunk.indexOf(10); i !== -1; i = chunk.indexOf(10, i + 1)) lines++
  return lines
}

/** Destination of batches. `write` calls back with the number of bytes written, or an error. */
interface Sink {
  readonly fd: number
  write(chunk: Buffer, done: (error: NodeJS.ErrnoException | null | undefined, written: number) => void): void
}

/**
 * A thread that blocks in a write would keep the process from exiting, so writes must not block: pipes and terminals are reopened
 * as non-blocking, without changing the shared descriptor; sockets (a Node parent's pipes, journald) go through libuv.
 */
function openSink(fd: number): Sink {
  const own = isatty(fd) || fstatSync(fd).isFIFO() ? reopen(fd) : fd
  if (own !== undefined && !fstatSync(own).isSocket()) return { fd: own, write: (chunk, done) => write(own, chunk, done) }
  const socket = new Socket({ fd, readable: false, writable: true })
  socket.unref()
  // The callback of each write reports the error too.
  socket.on('error', () => undefined)
  return { fd, write: (chunk, done) => void socket.write(chunk, (error) => done(error, chunk.length)) }
}

function reopen(fd: number): number | undefined {
  try {
    const own = openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK)
    process.once('exit', () => closeSync(own))
    return own
  } catch {
    // Another user's pipe, or no /proc.
    return undefined
  }
}
