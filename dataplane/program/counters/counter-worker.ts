import { parentPort, workerData } from 'node:worker_threads'
import { lowerCurrentThread } from '../../runtime/thread-priority.ts'
import { CounterFile, type SavedCounter } from './counter-file.ts'

/** What the thread receives at its start. */
export interface CounterData {
  readonly path: string
}

/** A message to the thread. Counters are written in order. */
export type ToCounters = { readonly type: 'write'; readonly counters: readonly SavedCounter[] } | { readonly type: 'close' }

/** A message from the thread. */
export type FromCounters =
  /** The file is open. */
  | { readonly type: 'open'; readonly counters: readonly SavedCounter[] }
  /** The file cannot be opened; the thread ends. */
  | { readonly type: 'unusable'; readonly error: string }
  /** A write has ended. */
  | { readonly type: 'done'; readonly error?: string }

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread's port has no origin
const send = (message: FromCounters): void => parentPort?.postMessage(message)
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function open(path: string): CounterFile | undefined {
  try {
    const file = new CounterFile(path)
    send({ type: 'open', counters: file.read() })
    return file
  } catch (error) {
    send({ type: 'unusable', error: messageOf(error) })
    return undefined
  }
}

function write(file: CounterFile, counters: readonly SavedCounter[]): void {
  try {
    file.write(counters)
    send({ type: 'done' })
  } catch (error) {
    send({ type: 'done', error: messageOf(error) })
  }
}

lowerCurrentThread()
const file = open((workerData as CounterData).path)
if (file !== undefined) {
  parentPort?.on('message', (message: ToCounters) => {
    if (message.type === 'write') return write(file, message.counters)
    file.close()
    parentPort?.close()
  })
}
