import { Worker } from 'node:worker_threads'
import { ProxyError } from '../exchange/error.ts'

/** Requests beyond this queue length are rejected. */
const MAX_QUEUED = 256

interface Running<Value> {
  readonly worker: Worker
  readonly pending: Map<number, { resolve(value: Value): void; reject(error: Error): void }>
}

/** Message to a worker. Its response has the same `id`. */
export type WorkerRequest<Request> = Request & { readonly id: number }
/** Message from a worker. */
export interface WorkerResponse<Value> {
  readonly id: number
  readonly value: Value
}

/**
 * Runs CPU-bound work of some milliseconds in a worker thread, one request after another. The thread starts with the first request and
 * again after a crash. It does not keep the process alive.
 */
export class BackgroundWorker<Request extends object, Value> {
  readonly #file: URL
  readonly #workload: string
  #running: Running<Value> | undefined
  #lastId = 0

  /**
   * @param file module of the worker: receives WorkerRequest messages, sends one WorkerResponse for each
   * @param workload plural noun for error messages: `passwords to check`
   */
  constructor(file: URL, workload: string) {
    this.#file = file
    this.#workload = workload
  }

  /** Rejects with a ProxyError if too many requests are queued, and with an Error if the thread crashed. */
  async run(request: Request): Promise<Value> {
    const { worker, pending } = (this.#running ??= this.#start())
    if (pending.size >= MAX_QUEUED) throw new ProxyError('PROCESSING_FAILED', { detail: `too many ${this.#workload}` })
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      pending.set(id, { resolve, reject })
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
      worker.postMessage({ ...request, id })
    })
  }

  #start(): Running<Value> {
    const started: Running<Value> = { worker: new Worker(this.#file), pending: new Map() }
    const { worker, pending } = started
    worker.on('message', ({ id, value }: WorkerResponse<Value>) => {
      pending.get(id)?.resolve(value)
      pending.delete(id)
    })
    const end = (error: Error): void => {
      if (this.#running === started) this.#running = undefined
      for (const { reject } of pending.values()) reject(error)
      pending.clear()
    }
    worker.on('error', (error) => end(error instanceof Error ? error : new Error(String(error))))
    worker.on('exit', () => end(new Error(`the thread for ${this.#workload} ended`)))
    worker.unref()
    return started
  }
}
