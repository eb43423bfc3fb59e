import { Worker } from 'node:worker_threads'
import { ProxyError } from '../exchange/error.ts'

/** Whoever comes later is told so rather than made to wait. */
const MAX_WAITING = 256

interface Running<Value> {
  readonly worker: Worker
  readonly waiting: Map<number, { settle(value: Value): void; reject(error: Error): void }>
}

/** What a worker is sent, and what it sends back: the `id` tells which question an answer is to. */
export type Question<Q> = Q & { readonly id: number }
export interface Answer<Value> {
  readonly id: number
  readonly value: Value
}

/**
 * Work of milliseconds in a thread of its own, which starts with the first question and starts anew when it broke. One question after
 * the other. It keeps no process alive.
 */
export class ThreadOf<Q extends object, Value> {
  readonly #file: URL
  readonly #what: string
  #running: Running<Value> | undefined
  #lastId = 0

  /** @param what the questions, for errors: `passwords to check` */
  constructor(file: URL, what: string) {
    this.#file = file
    this.#what = what
  }

  /** Rejects with a ProxyError when too many wait, and with an Error when the thread broke. */
  async ask(question: Q): Promise<Value> {
    const { worker, waiting } = (this.#running ??= this.#start())
    if (waiting.size >= MAX_WAITING) throw new ProxyError('PROCESSING_FAILED', { detail: `too many ${this.#what}` })
    const id = ++this.#lastId
    return new Promise((settle, reject) => {
      waiting.set(id, { settle, reject })
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
      worker.postMessage({ ...question, id })
    })
  }

  #start(): Running<Value> {
    const started: Running<Value> = { worker: new Worker(this.#file), waiting: new Map() }
    const { worker, waiting } = started
    worker.on('message', ({ id, value }: Answer<Value>) => {
      waiting.get(id)?.settle(value)
      waiting.delete(id)
    })
    const end = (error: Error): void => {
      if (this.#running === started) this.#running = undefined
      for (const { reject } of waiting.values()) reject(error)
      waiting.clear()
    }
    worker.on('error', (error) => end(error instanceof Error ? error : new Error(String(error))))
    worker.on('exit', () => end(new Error(`the thread for ${this.#what} ended`)))
    worker.unref()
    return started
  }
}
