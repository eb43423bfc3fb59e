import type { PluginServices, ServiceCall, ServiceResult } from './services.ts'

/** Calls of one plugin that wait at a time. */
const MAX_WAITING = 1000

/** In a worker thread: sends calls of services to the gateway. */
export class ServiceClient {
  readonly #send: (id: number, call: ServiceCall) => void
  readonly #waiting = new Map<number, { resolve(result: ServiceResult): void; reject(error: Error): void }>()
  #lastId = 0

  constructor(send: (id: number, call: ServiceCall) => void) {
    this.#send = send
  }

  readonly services: PluginServices = {
    keyValue: (call) => this.#run({ service: 'keyValue', call }),
    fetch: (call) => this.#run({ service: 'fetch', call }),
  }

  receive(id: number, result: ServiceResult, error: string | undefined): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error === undefined) waiting?.resolve(result)
    else waiting?.reject(new TypeError(error))
  }

  #run<T extends ServiceResult>(call: ServiceCall): Promise<T> {
    if (this.#waiting.size >= MAX_WAITING) return Promise.reject(new Error(`${MAX_WAITING} calls of the plugin wait already`))
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId
      // Before it waits: a call that cannot be copied throws.
      this.#send(id, call)
      this.#waiting.set(id, { resolve: resolve as (result: ServiceResult) => void, reject })
    })
  }
}
