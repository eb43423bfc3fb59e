import { Worker } from 'node:worker_threads'
import type { WorkerData } from './data.ts'
import type { FromWorker, Method, ToWorker, WorkerMethods } from './messages.ts'

/** The worker ended before it answered. */
export class WorkerEndedError extends Error {}

/** Events of a worker thread. */
export interface ThreadEvents {
  onMessage(message: Exclude<FromWorker, { type: 'result' | 'failure' }>): void
  /** Called once. `error`: the uncaught error that ended it. */
  onEnd(error: Error | undefined, code: number): void
}

interface Pending {
  resolve(value: unknown): void
  reject(error: Error): void
}

/** A worker thread, as the main thread sees it: requests with answers, in order. */
export class Thread {
  readonly #worker: Worker
  readonly #pending = new Map<number, Pending>()
  #lastId = 0
  #error: Error | undefined
  #hasEnded = false

  constructor(file: URL, data: WorkerData, events: ThreadEvents) {
    this.#worker = new Worker(file, { workerData: data, name: `worker ${data.index}` })
    this.#worker.on('message', (message: FromWorker) => {
      if (message.type === 'result') this.#settle(message.id, ({ resolve }) => resolve(message.result))
      else if (message.type === 'failure') this.#settle(message.id, ({ reject }) => reject(new Error(message.error)))
      else events.onMessage(message)
    })
    this.#worker.on('error', (error) => (this.#error = error instanceof Error ? error : new Error(String(error))))
    this.#worker.on('exit', (code) => {
      this.#hasEnded = true
      for (const id of this.#pending.keys()) this.#settle(id, ({ reject }) => reject(new WorkerEndedError(`worker ${data.index} ended`)))
      events.onEnd(this.#error, code)
    })
  }

  get threadId(): number {
    return this.#worker.threadId
  }

  /** Rejects with a WorkerEndedError if the worker ends first. */
  request<M extends Method>(method: M, body: WorkerMethods[M]['body']): Promise<WorkerMethods[M]['result']> {
    if (this.#hasEnded) return Promise.reject(new WorkerEndedError('the worker has ended'))
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId
      this.#pending.set(id, { resolve, reject })
      this.send({ type: 'request', id, method, body })
    })
  }

  send(message: ToWorker): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    this.#worker.postMessage(message)
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate()
  }

  #settle(id: number, settle: (pending: Pending) => void): void {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    if (pending !== undefined) settle(pending)
  }
}
