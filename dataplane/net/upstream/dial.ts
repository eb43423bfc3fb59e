import { subscribe } from 'node:diagnostics_channel'
import { lookup } from 'node:dns'
import type { Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { AddressRanges, refuseAddress, type DialRules } from '#api/address.ts'
import type { UpstreamsSpec } from '#gen/config/types.ts'

/** Addresses of this machine: those of its network interfaces. */
const interfaceAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((entries = []) => entries.map(({ address }) => address.replace(/%.*$/, '')))

/** Counters of a table: one for each number of a port. */
const PORTS = 65_536
/** How long a closed connection to a management port counts: its request may still wait to be read there. */
const LINGER_MS = 30_000

interface DialSettings {
  readonly isInPod: boolean
  readonly upstreams: UpstreamsSpec
  /** Where config of others comes from. */
  readonly xdsAddress: string | undefined
}

/**
 * All connections to upstreams pass here, whatever opens them: which addresses they may go to, and which ports of this machine they come from
 * (traffic.md §13.2). One per thread; the table is common to all threads.
 */
export class Dialing {
  /** Set before the first connection. */
  rules: DialRules = { isLoopbackAllowed: true, ports: () => [], addresses: interfaceAddresses }
  /** Patterns of hosts that may receive the credentials of the process besides APIs of its cloud; undefined: all (traffic.md §13.3). */
  identityHosts: readonly string[] | undefined
  /** Resolves the names of hosts, as the system does. */
  lookup: typeof lookup = lookup
  /** Open connections by local port: those to a port with the number of a management port, then all of them. */
  #table = new Uint16Array(Dialing.allocate())

  static allocate(): SharedArrayBuffer {
    return new SharedArrayBuffer(2 * PORTS * Uint16Array.BYTES_PER_ELEMENT)
  }

  /** Sets the rules of a process, and counts its connections: upstreams on the same machine are for processes outside of pods. */
  apply(settings: DialSettings, ports: DialRules['ports'], operator: DialRules['operator']): void {
    const { isInPod, upstreams, xdsAddress } = settings
    // The author of a config file owns the process.
    this.identityHosts = xdsAddress === undefined ? undefined : (upstreams.identityHosts ?? [])
    const permitted = new AddressRanges(upstreams.addresses ?? [])
    this.rules = { isLoopbackAllowed: !isInPod, permitted, ports, addresses: interfaceAddresses, ...(operator && { operator }) }
    this.watch()
  }

  /** Counts connections together with those of other threads. Call it before the first connection. */
  share(memory: SharedArrayBuffer): void {
    this.#table = new Uint16Array(memory)
  }

  /** Counts all connections that this thread opens from now on, whatever opens them: libraries, too. */
  watch(): void {
    subscribe('net.client.socket', (message) => this.track((message as { readonly socket: Socket }).socket))
  }

  /** Why no connection may be opened to the address of a host, for logs; undefined: it may. */
  refuse(host: string, address: string, port: number): string | undefined {
    const reason = refuseAddress(address, port, this.rules)
    return reason && `${host}:${port} (${address}): ${reason}`
  }

  /** Counts a connection while it is open, before anything is sent on it. */
  track(socket: Socket): void {
    socket.prependOnceListener('connect', () => {
      const { localPort, remotePort } = socket
      if (localPort === undefined) return
      const isManagement = [...this.rules.ports()].some((port) => port === remotePort)
      Atomics.add(this.#table, PORTS + localPort, 1)
      if (isManagement) Atomics.add(this.#table, localPort, 1)
      socket.once('close', () => {
        Atomics.sub(this.#table, PORTS + localPort, 1)
        if (isManagement) setTimeout(() => Atomics.sub(this.#table, localPort, 1), LINGER_MS).unref()
      })
    })
  }

  /**
   * Whether this process opened the other side of a connection that a management port accepted. Call it once the connection has data: it is counted before
   * anything is sent. With `isExact` only connections to the number of a management port count, as by loopback, where nothing translates addresses:
   * programs of this machine may use the same local port towards others.
   */
  isOwn({ remoteAddress = '', remotePort = 0 }: Pick<Socket, 'remoteAddress' | 'remotePort'>, isExact = false): boolean {
    const isCounted = Atomics.load(this.#table, remotePort) > 0
    const address = remoteAddress.replace(/^::ffff:/, '').replace(/%.*$/, '')
    if (address.startsWith('127.') || address === '::1') return isCounted
    return (isCounted || (!isExact && Atomics.load(this.#table, PORTS + remotePort) > 0)) && [...this.rules.addresses()].includes(address)
  }
}

export const dialing = new Dialing()
