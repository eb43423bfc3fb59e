import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { OnFinish, OnRequest } from '../exchange/exchange.ts'
import type { Deadlines } from '../http/deadlines.ts'
import { Accepted, type AcceptedOwner } from './accepted.ts'
import { listenOn } from './listen.ts'
import type { BindHooks, BindProgram } from './program.ts'

/** Configuration of a bind that does not change. */
export interface BindOptions {
  /** Key of the bind, `connection.bind` in exchanges. */
  readonly key: string
  /** 0 picks a free port. */
  readonly port: number
  /** IP addresses; undefined: all, IPv6 and IPv4. */
  readonly addresses?: readonly string[] | undefined
  readonly program: BindProgram
  readonly onRequest: OnRequest
  readonly onFinished: OnFinish
  readonly hooks?: BindHooks
  /** Allows several processes to listen on the same port. */
  readonly reusePort?: boolean
  /** Further connections are closed at once. Default: unlimited. */
  readonly maxConnections?: number
  readonly deadlines?: Deadlines
}

/** A port that the data plane listens on. */
export interface Bind {
  readonly key: string
  /** The actual port, after `listen`. */
  readonly port: number
  /** Number of open connections. */
  readonly size: number
  /** Listens on all addresses. If one fails, listens on none and rejects with a BindError. */
  listen(): Promise<void>
  /** Sets the program of new connections. */
  update(program: BindProgram): void
  /** Makes connections close after their requests: `connection: close`, GOAWAY. New connections are accepted and drained as well. */
  drain(): void
  /** Drains the current connections of some listeners, whose config changed (traffic.md §7). */
  drainListeners(isAffected: (listener: string) => boolean): void
  stopAccepting(): void
  /** Accepts the connections that wait in the queue of the kernel, which would be reset when the socket closes. */
  acceptPending(): Promise<void>
  /** Stops accepting and closes all connections: gracefully, or at once with `force`. Resolves when all are closed. */
  close(force: boolean): Promise<void>
  /** Updates the meters of open connections. Call it before reading metrics. */
  report(): void
}

const QUIET_TURNS = 2
const MAX_TURNS = 1000

/** Creates a bind, which accepts connections after `listen`. */
export function createBind(options: BindOptions): Bind {
  return new RunningBind(options)
}

/** Finishes requests in flight. Accepts new connections for `minDrainMs`; cuts the remaining ones after `maxDrainMs`. */
export async function drainBinds(binds: readonly Bind[], { minDrainMs, maxDrainMs }: { minDrainMs: number; maxDrainMs: number }): Promise<void> {
  for (const bind of binds) bind.drain()
  await wait(Math.min(minDrainMs, maxDrainMs))
  await Promise.all(binds.map((bind) => bind.acceptPending()))
  const closed = Promise.all(binds.map((bind) => bind.close(false)))
  const timer = setTimeout(() => void Promise.all(binds.map((bind) => bind.close(true))), Math.max(0, maxDrainMs - minDrainMs))
  await closed
  clearTimeout(timer)
}

class RunningBind implements Bind, AcceptedOwner {
  readonly key: string
  readonly onRequest: OnRequest
  readonly onFinish: OnFinish
  readonly hooks: BindHooks
  readonly deadlines: Deadlines | undefined
  readonly #options: BindOptions
  readonly #open = new Set<Accepted>()
  #servers: Server[] = []
  #program: BindProgram
  #isDraining = false
  #accepted = 0
  #onEmpty: (() => void)[] = []

  constructor(options: BindOptions) {
    this.key = options.key
    this.onRequest = options.onRequest
    this.onFinish = options.onFinished
    this.hooks = options.hooks ?? {}
    this.deadlines = options.deadlines
    this.#options = options
    this.#program = options.program
  }

  get port(): number {
    const address = this.#servers[0]?.address()
    return typeof address === 'object' && address !== null ? address.port : this.#options.port
  }

  get size(): number {
    return this.#open.size
  }

  get program(): BindProgram {
    return this.#program
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  async listen(): Promise<void> {
    let { port } = this.#options
    const { addresses } = this.#options
    try {
      for (const address of addresses === undefined || addresses.length === 0 ? [undefined] : addresses) {
        const server = createServer({ noDelay: true }, (socket) => this.#accept(socket))
        this.#servers.push(server)
        if (this.#options.maxConnections !== undefined) server.maxConnections = this.#options.maxConnections
        await listenOn(server, port, address, this.#options.reusePort === true)
        // Port 0: one free port for all addresses.
        port = (server.address() as AddressInfo).port
        // For example out of file descriptors: the next connection may succeed.
        server.on('error', (error) => this.hooks.onDrop?.(`accept failed: ${error.message}`, '', 'accept'))
      }
    } catch (error) {
      this.stopAccepting()
      throw error
    }
  }

  update(program: BindProgram): void {
    this.#program = program
  }

  drain(): void {
    if (this.#isDraining) return
    this.#isDraining = true
    for (const accepted of this.#open) accepted.drain(true)
  }

  drainListeners(isAffected: (listener: string) => boolean): void {
    for (const accepted of this.#open) if (accepted.listener !== undefined && isAffected(accepted.listener)) accepted.drain(false)
  }

  stopAccepting(): void {
    for (const server of this.#servers) if (server.listening) server.close()
    this.#servers = []
  }

  async acceptPending(): Promise<void> {
    // Each turn of the event loop accepts what is in the queue.
    for (let quiet = 0, turn = 0; quiet < QUIET_TURNS && turn < MAX_TURNS; turn++) {
      const before = this.#accepted
      await nextTurn()
      quiet = this.#accepted === before ? quiet + 1 : 0
    }
  }

  close(force: boolean): Promise<void> {
    this.stopAccepting()
    this.#isDraining = true
    for (const accepted of this.#open) accepted.close(force)
    if (this.#open.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onEmpty.push(resolve))
  }

  report(): void {
    for (const accepted of this.#open) accepted.report()
  }

  forget(accepted: Accepted): void {
    this.#open.delete(accepted)
    if (this.#open.size > 0) return
    for (const resolve of this.#onEmpty.splice(0)) resolve()
  }

  #accept(socket: Socket): void {
    this.#accepted++
    const accepted = new Accepted(socket, this)
    this.#open.add(accepted)
    accepted.begin()
  }
}
