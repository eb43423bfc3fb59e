import type { ConfigChanges, ConfigStore } from '../../config/store.ts'
import type { ThreadCall } from '../../management/console/thread.ts'
import type { SharedPorts } from '../../gateway/binds.ts'
import type { Tracer } from '../../observe/trace/tracer.ts'
import { releaseMemory } from '../../runtime/garbage.ts'
import type { QuotaBucket } from '../../runtime/quotas.ts'
import type { ShareBucket } from '../../runtime/shares.ts'
import type { KeyValueCall, KeyValueResult } from '../../runtime/key-value.ts'
import { decodeConfig, type SectionNames } from './config.ts'
import type { BindStatus, WorkerDrain } from './data.ts'
import type { FromWorker, Method, ToWorker, TraceRequest, WorkerMethods } from './messages.ts'
import type { FamilyDump } from '../../observe/telemetry/metrics/registry.ts'

/** The parts of a worker that the main thread controls. */
export interface WorkerParts {
  readonly store: ConfigStore
  readonly names: SectionNames
  readonly tracer: Pick<Tracer, 'wait'>
  status(): BindStatus
  /** Resolves when every port is open or has failed once. */
  settled(): Promise<void>
  collect(isScrape: boolean): FamilyDump[]
  setLevel(spec: string): void
  /** Runs a call of the management API. */
  console(call: ThreadCall): Promise<unknown>
  drain(settings: WorkerDrain): Promise<void>
  finish(): Promise<void>
}

/** The side of a worker of the messages between it and the main thread. */
export class WorkerEndpoint {
  readonly #send: (message: FromWorker) => void
  readonly #claims = new Map<number, { resolve(): void; reject(error: Error): void }>()
  readonly #traces = new Map<number, AbortController>()
  readonly #keyValues = new Map<number, { resolve(result: KeyValueResult): void; reject(error: Error): void }>()
  readonly #shares = new Map<number, (hasResponse: boolean) => void>()
  #lastShare = 0
  #lastKeyValue = 0
  #lastClaim = 0
  #hasConfig = false
  #parts: WorkerParts | undefined
  #prepared: (() => ConfigChanges) | undefined
  /** Config requests run one after another. */
  #configuring: Promise<unknown> = Promise.resolve()

  constructor(send: (message: FromWorker) => void) {
    this.#send = send
  }

  /** Begins to handle requests. */
  open(parts: WorkerParts): void {
    this.#parts = parts
    this.#send({ type: 'online' })
  }

  receive(message: ToWorker): void {
    if (message.type === 'claimed') {
      const claim = this.#claims.get(message.id)
      this.#claims.delete(message.id)
      if (message.error === undefined) claim?.resolve()
      else claim?.reject(new Error(message.error))
      return
    }
    if (message.type === 'keyValueResult') return this.#onKeyValue(message)
    if (message.type === 'shareResult') {
      this.#shares.get(message.id)?.(message.hasResponse)
      this.#shares.delete(message.id)
      return
    }
    const { id, method, body } = message
    this.#handle(method, body).then(
      (result) => this.#send({ type: 'result', id, result }),
      (error: unknown) => this.#send({ type: 'failure', id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    )
  }

  /** Runs an operation on the values of a plugin, which the main thread has. Rejects with a TypeError. */
  keyValue(plugin: string, call: KeyValueCall | undefined): Promise<KeyValueResult> {
    return new Promise((resolve, reject) => {
      const id = ++this.#lastKeyValue
      this.#keyValues.set(id, { resolve, reject })
      this.#send({ type: 'keyValue', id, plugin, call })
    })
  }

  /** Asks for a larger share of a budget, through the main thread. */
  wantShare(bucket: ShareBucket): Promise<boolean> {
    return this.#ask((id) => ({ type: 'share', id, bucket }))
  }

  /** Asks for an assignment of a rate limit quota service, through the main thread. */
  assignQuota(bucket: QuotaBucket): Promise<boolean> {
    return this.#ask((id) => ({ type: 'quota', id, bucket }))
  }

  #ask(toMessage: (id: number) => FromWorker): Promise<boolean> {
    return new Promise((resolve) => {
      const id = ++this.#lastShare
      this.#shares.set(id, resolve)
      this.#send(toMessage(id))
    })
  }

  #onKeyValue({ id, result, error }: Extract<ToWorker, { type: 'keyValueResult' }>): void {
    const waiting = this.#keyValues.get(id)
    this.#keyValues.delete(id)
    if (error === undefined) waiting?.resolve(result)
    else waiting?.reject(new TypeError(error))
  }

  /** The ports of this worker; the main thread checks them for other programs. */
  ports(isReporter: boolean): SharedPorts {
    return {
      isReporter,
      claim: (port, addresses) =>
        new Promise((resolve, reject) => {
          const id = ++this.#lastClaim
          this.#claims.set(id, { resolve, reject })
          this.#send({ type: 'claim', id, port, addresses })
        }),
      release: (port) => this.#send({ type: 'release', port }),
      onChange: () => {
        if (this.#parts !== undefined) this.#send({ type: 'binds', status: this.#parts.status() })
      },
    }
  }

  async #handle(method: Method, body: unknown): Promise<unknown> {
    const parts = this.#parts
    if (parts === undefined) throw new Error('the worker is starting')
    switch (method) {
      case 'prepare':
        return this.#inOrder(async () => {
          this.#prepared = await parts.store.prepare('stream', decodeConfig(body as WorkerMethods['prepare']['body'], parts.names))
          // The first version, before the ports open.
          if (!this.#hasConfig) releaseMemory()
          this.#hasConfig = true
        })
      case 'commit':
        return this.#inOrder(async () => {
          if (this.#prepared === undefined) throw new Error('no version of the config is prepared')
          this.#prepared()
          this.#prepared = undefined
          await parts.settled()
          return parts.status()
        })
      case 'discard':
        return this.#inOrder(async () => void (this.#prepared = undefined))
      case 'collect':
        return parts.collect(body as boolean)
      case 'trace':
        return this.#trace(parts, body as TraceRequest)
      case 'cancelTrace':
        return void this.#traces.get(body as number)?.abort()
      case 'level':
        return parts.setLevel(body as string)
      case 'console':
        return parts.console(body as ThreadCall)
      case 'memory':
        return process.memoryUsage()
      case 'drain':
        return parts.drain(body as WorkerDrain)
      case 'finish':
        return parts.finish()
    }
  }

  async #inOrder<T>(run: () => Promise<T>): Promise<T> {
    const done = this.#configuring.then(run)
    this.#configuring = done.catch(() => undefined)
    return done
  }

  async #trace({ tracer }: WorkerParts, { trace, filter, timeoutMs }: TraceRequest): Promise<unknown> {
    const abort = new AbortController()
    this.#traces.set(trace, abort)
    try {
      return await tracer.wait(filter, timeoutMs, abort.signal)
    } finally {
      this.#traces.delete(trace)
    }
  }
}
