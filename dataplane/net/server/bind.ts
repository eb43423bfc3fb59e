import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { OnFinish, OnRequest } from '../../request/exchange/exchange.ts'
import type { Deadlines } from '../../http/deadlines.ts'
import { Accepted, type AcceptedOwner } from './accepted.ts'
import { listenOn } from './listen.ts'
import type { BindHooks, BindProgram } from './program.ts'

/** Connections that a thread has open, over all binds. */
export interface ConnectionRoom {
  readonly limit: number
  open: number
}

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
  /** Connections of all binds of the thread; beyond its limit, idle ones are closed for new ones. Default: unlimited. */
  readonly room?: ConnectionRoom | undefined
  /** Connections of one client address without a protocol or a finished handshake; beyond it the oldest is closed. Default: unlimited. */
  readonly maxPendingPerAddress?: number
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
/** Connections that are looked at for an idle one. */
const CLOSE_CANDIDATES = 32

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
  /** Those whose protocol is not known or whose handshake is not finished, the oldest first. */
  readonly #pending = new Set<Accepted>()
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

  begins(accepted: Accepted): void {
    this.#pending.delete(accepted)
  }

  forget(accepted: Accepted): void {
    this.#pending.delete(accepted)
    this.#open.delete(accepted)
    if (this.#options.room !== undefined) this.#options.room.open--
    if (this.#open.size > 0) return
    for (const resolve of this.#onEmpty.splice(0)) resolve()
  }

  #accept(socket: Socket): void {
    this.#accepted++
    const { room, maxPendingPerAddress: most = Infinity } = this.#options
    if (most !== Infinity) this.#dropPendingOf(socket.remoteAddress, most)
    if (room !== undefined && room.open >= room.limit && !this.#closeIdle()) {
      this.hooks.onDrop?.(`${room.limit} connections are open`, socket.remoteAddress ?? '', 'limit')
      return void socket.destroy()
    }
    if (room !== undefined) room.open++
    const accepted = new Accepted(socket, this)
    this.#open.add(accepted)
    this.#pending.add(accepted)
    accepted.begin()
  }

  #dropPendingOf(address: string | undefined, most: number): void {
    const [oldest, ...others] = [...this.#pending].filter(({ peerAddress }) => peerAddress === address)
    if (others.length + 1 >= most) oldest?.giveWay()
  }

  /**
   * Closes a connection that serves no request: the oldest whose handshake takes long, or one of the oldest of the others. Busy ones of those that are
   * looked at close after their requests.
   */
  #closeIdle(): boolean {
    for (const silent of this.#pending) {
      if (silent.isSlow) return silent.giveWay()
      break
    }
    let left = CLOSE_CANDIDATES
    for (const accepted of this.#open) {
      if (left-- === 0) return false
      accepted.drain(false)
      if (accepted.isOver) return true
      // Look at others next time.
      this.#open.delete(accepted)
      this.#open.add(accepted)
    }
    return false
  }
}
