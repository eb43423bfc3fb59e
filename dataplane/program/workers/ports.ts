import { probePort } from '../../net/server/listen.ts'

/**
 * The ports that workers listen on. Sockets with `reusePort` share a port with any program of the same user, so a port is checked without it before the
 * first worker listens.
 */
export class PortRegistry {
  /** Workers by port. */
  readonly #holders = new Map<number, Set<object>>()
  readonly #probes = new Map<number, Promise<void>>()

  /** Rejects with a BindError if another program listens on the port. */
  async claim(worker: object, port: number, addresses: readonly string[] | undefined): Promise<void> {
    if (!this.#holders.has(port)) await this.#probe(port, addresses)
    const holders = this.#holders.get(port) ?? new Set()
    this.#holders.set(port, holders.add(worker))
  }

  release(worker: object, port: number): void {
    const holders = this.#holders.get(port)
    holders?.delete(worker)
    if (holders?.size === 0) this.#holders.delete(port)
  }

  /** The worker has ended, and its sockets are closed. */
  releaseAll(worker: object): void {
    for (const port of this.#holders.keys()) this.release(worker, port)
  }

  /** Concurrent claims share one probe. */
  #probe(port: number, addresses: readonly string[] | undefined): Promise<void> {
    let probe = this.#probes.get(port)
    if (probe === undefined) {
      probe = probePort(port, addresses).finally(() => this.#probes.delete(port))
      this.#probes.set(port, probe)
    }
    return probe
  }
}
