import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/**
 * Added to the nice value of the process: a third of the CPU time of a thread of normal priority, while both wait for the same core. With 10, garbage
 * is collected so late that the process needs 12 MiB more.
 */
const NICENESS = 5
const LOWEST = 19
const TASKS = '/proc/self/task'

/**
 * Lowers the priority of V8's threads, which mark and sweep garbage. On one core they would otherwise delay the event loop by 30 ms and more at a time. Linux
 * only. Node below 24 gives its threads no names: call it before anything starts a thread of libuv's pool.
 */
export function lowerGarbageCollection(): void {
  for (const thread of listThreads()) if (thread !== process.pid && /V8Worker|^node$/.test(nameOf(thread))) lower(thread)
}

/** Lowers the priority of the calling worker thread. Linux only. */
export function lowerCurrentThread(): void {
  const thread = currentThread()
  // Without /proc all threads keep the priority of the process.
  if (thread !== 0) lower(thread)
}

/** ID of the calling thread in the operating system; 0 if it is unknown. Linux only. */
export function currentThread(): number {
  try {
    // <pid>/task/<thread>
    return Number(readlinkSync('/proc/thread-self').split('/').at(-1))
  } catch {
    return 0
  }
}

/** Lowers the priority of a process that was just started: the threads that it starts inherit it. */
export const lowerProcess = (pid: number): void => lower(pid)

function listThreads(): readonly number[] {
  try {
    return readdirSync(TASKS).map(Number)
  } catch {
    return []
  }
}

function nameOf(thread: number): string {
  try {
    return readFileSync(`${TASKS}/${thread}/comm`, 'utf8').trim()
  } catch {
    return ''
  }
}

function lower(thread: number): void {
  try {
    setPriority(thread, Math.min(LOWEST, getPriority(process.pid) + NICENESS))
  } catch {
    // The thread ended, or a seccomp profile denies the call.
  }
}
