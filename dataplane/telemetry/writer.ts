import { closeSync, constants, fstatSync, openSync, write, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { isatty } from 'node:tty'

/** Takes whole lines and never waits for the other side. */
export interface LineWriter {
  /** False when the line was dropped because the other side has stopped reading. */
  write(line: string): boolean
  /** Resolves when everything written so far has left the process, or after a second of no progress. */
  flush(): Promise<void>
  /** Last resort, for `process.on('exit')`. */
  flushSync(): void
  /** Lines dropped since the start. */
  readonly dropped: number
}

export interface WriterOptions {
  /** Lines wait at most this long, in milliseconds. */
  flushMs?: number
  /** Lines are written out once they are this many characters. */
  flushSize?: number
  /** Characters that may wait; beyond it lines are dropped and counted. */
  maxSize?: number
}

const BLOCKED_RETRY_MS = 20
const FLUSH_PATIENCE_MS = 1000

/** Batches lines and writes them one batch at a time, without ever blocking. */
export function createWriter(fd: number, options: WriterOptions = {}): LineWriter {
  const { flushMs = 100, flushSize = 32 * 1024, maxSize = 4 * 1024 * 1024 } = options
  const out = openSink(fd)
  let waiting = ''
  let dropped = 0
  let inFlight: Buffer | undefined
  let timer: NodeJS.Timeout | undefined
  let waiters: (() => void)[] = []

  const arm = (delayMs: number): void => {
    timer ??= setTimeout(onTimer, delayMs).unref()
  }
  const onTimer = (): void => {
    timer = undefined
    pump()
  }

  function pump(): void {
    if (inFlight !== undefined) return
    if (waiting === '') {
      const done = waiters
      waiters = []
      for (const resolve of done) resolve()
      return
    }
    inFlight = Buffer.from(waiting)
    waiting = ''
    send(inFlight)
  }

  function send(chunk: Buffer): void {
    inFlight = chunk
    out.write(chunk, (error, written) => {
      if (error?.code === 'EAGAIN') {
        setTimeout(send, BLOCKED_RETRY_MS, chunk).unref()
        return
      }
      // Nobody is left to tell when standard output itself is broken (EPIPE): the lines count as dropped.
      if (error) dropped += countLines(chunk)
      else if (written < chunk.length) {
        send(chunk.subarray(written))
        return
      }
      inFlight = undefined
      // Less than a batch waits for its timer: a write of few lines costs as much as one of many.
      if (waiting.length >= flushSize || waiters.length > 0 || timer === undefined) pump()
    })
  }

  return {
    get dropped() {
      return dropped
    },
    write(line) {
      if (waiting.length + line.length > maxSize) {
        dropped++
        return false
      }
      waiting += line
      if (waiting.length >= flushSize && inFlight === undefined) pump()
      else arm(flushMs)
      return true
    },
    flush() {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiters.push(resolve)
      const patience = setTimeout(resolve, FLUSH_PATIENCE_MS)
      pump()
      return promise.finally(() => clearTimeout(patience))
    },
    flushSync() {
      // A write in flight is finished by its thread; only what it does not hold is written here.
      let rest = Buffer.from(waiting)
      waiting = ''
      try {
        while (rest.length > 0) rest = rest.subarray(writeSync(out.fd, rest))
      } catch {
        dropped += countLines(rest)
      }
    },
  }
}

function countLines(chunk: Buffer): number {
  let lines = 0
  for (let i = chunk.indexOf(10); i !== -1; i = chunk.indexOf(10, i + 1)) lines++
  return lines
}

/** Where batches go. `write` calls back with the number of bytes taken, or an error. */
interface Sink {
  readonly fd: number
  write(chunk: Buffer, done: (error: NodeJS.ErrnoException | null | undefined, written: number) => void): void
}

/**
 * A thread that blocks in a write would keep the process from exiting, so nothing here may block: pipes and terminals are opened anew,
 * non-blocking without changing the descriptor that others share; sockets (a Node parent's pipes, journald) go through libuv.
 */
function openSink(fd: number): Sink {
  const own = isatty(fd) || fstatSync(fd).isFIFO() ? reopen(fd) : fd
  if (own !== undefined && !fstatSync(own).isSocket()) return { fd: own, write: (chunk, done) => write(own, chunk, done) }
  const socket = new Socket({ fd, readable: false, writable: true })
  socket.unref()
  // The callback of each write has the error too.
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
