import { Worker } from 'node:worker_threads'
import { ProxyError, retryAfter } from './error.ts'

/** Requests beyond this queue length are rejected. */
const MAX_QUEUED = 256
/** Requests of one client beyond this number are rejected, so that one client cannot fill the queue. */
const MAX_QUEUED_PER_CLIENT = MAX_QUEUED / 4

/** Message to a worker. Its response has the same `id`. */
export type WorkerRequest<Request> = Request & { readonly id: number }
/** Message from a worker. */
export interface WorkerResponse<Value> {
  readonly id: number
  readonly value: Value
}

/** Options of one request. */
export interface BackgroundOptions {
  /** Clients take turns; requests without a client are those of one client without a limit of its own. */
  readonly client?: string | undefined
  /** Drops the request if it has not started: `run` rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

interface Job<Request, Value> {
  readonly request: Request
  readonly client: string
  resolve(value: Value): void
  reject(error: unknown): void
}

/**
 * Runs CPU-bound work of some milliseconds in a worker thread, one request after another. Clients take turns, so that a client with few requests does not
 * wait for all requests of another. The thread starts with the first request and again after a crash. It does not keep the process alive.
 */
export class BackgroundWorker<Request extends object, Value> {
  readonly #file: URL
  readonly #workload: string
  /** Requests that have not started, by client. The first client is next. */
  readonly #queue = new Map<string, Job<Request, Value>[]>()
  #queued = 0
  #current: Job<Request, Value> | undefined
  #worker: Worker | undefined
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
  async run(request: Request, { client = '', signal }: BackgroundOptions = {}): Promise<Value> {
    signal?.throwIfAborted()
    const waiting = this.#queue.get(client) ?? []
    if (this.#queued + (this.#current === undefined ? 0 : 1) >= MAX_QUEUED) throw this.#reject('')
    if (client !== '' && waiting.length >= MAX_QUEUED_PER_CLIENT) throw this.#reject(' from one client')
    return new Promise((resolve, reject) => {
      const job: Job<Request, Value> = { request, client, resolve, reject }
      waiting.push(job)
      this.#queue.set(client, waiting)
      this.#queued++
      signal?.addEventListener('abort', () => this.#drop(job, signal.reason), { once: true })
      this.#next()
    })
  }

  #reject(whose: string): ProxyError {
    return new ProxyError('PROCESSING_FAILED', { detail: `too many ${this.#workload}${whose}`, headers: retryAfter(1000) })
  }

  #drop(job: Job<Request, Value>, reason: unknown): void {
    const waiting = this.#queue.get(job.client)
    const index = waiting?.indexOf(job) ?? -1
    if (waiting === undefined || index === -1) return
    waiting.splice(index, 1)
    if (waiting.length === 0) this.#queue.delete(job.client)
    this.#queued--
    job.reject(reason)
  }

  /** Starts the next request unless one is running. */
  #next(): void {
    if (this.#current !== undefined) return
    const [turn] = this.#queue
    if (turn === undefined) return
    const [client, waiting] = turn
    const job = waiting.shift()
    // Moves the client to the end.
    this.#queue.delete(client)
    if (waiting.length > 0) this.#queue.set(client, waiting)
    if (job === undefined) return
    this.#queued--
    this.#current = job
    const worker = (this.#worker ??= this.#start())
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    worker.postMessage({ ...job.request, id: ++this.#lastId })
  }

  #start(): Worker {
    const worker = new Worker(this.#file)
    worker.on('message', ({ id, value }: WorkerResponse<Value>) => {
      if (id === this.#lastId) this.#finish((job) => job.resolve(value))
    })
    const end = (error: Error): void => {
      if (this.#worker !== worker) return
      this.#worker = undefined
      this.#finish((job) => job.reject(error))
    }
    worker.on('error', (error) => end(error instanceof Error ? error : new Error(String(error))))
    worker.on('exit', () => end(new Error(`the thread for ${this.#workload} ended`)))
    worker.unref()
    return worker
  }

  #finish(settle: (job: Job<Request, Value>) => void): void {
    const job = this.#current
    this.#current = undefined
    if (job !== undefined) settle(job)
    this.#next()
  }
}
