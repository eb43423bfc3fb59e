import { UpstreamError, type ConnectionShare } from './types.ts'

/** Connections that a thread may have open at once. */
export interface ConnectionLimits {
  /** From clients. */
  readonly inbound: number
  /** To all upstreams. */
  readonly outbound: number
  /** To one backend. */
  readonly backend: number
}

/**
 * The limits of each of `threads` threads, so that no backend takes more than half of the process's descriptors (traffic.md §13): a request takes two,
 * one to its client and one to the backend.
 */
export function connectionLimits(descriptors: number, threads: number): ConnectionLimits {
  const share = descriptors / threads
  const atLeastOne = (part: number): number => Math.max(1, Math.floor(part))
  return { inbound: atLeastOne(share / 2), outbound: atLeastOne((share * 3) / 8), backend: atLeastOne(share / 4) }
}

/** Counts the connections of a thread to upstreams. */
export class OpenConnections {
  readonly #limits: Pick<ConnectionLimits, 'outbound' | 'backend'>
  readonly #byBackend = new Map<string, number>()
  #total = 0

  constructor(limits: Pick<ConnectionLimits, 'outbound' | 'backend'>) {
    this.#limits = limits
  }

  of(backend: string): ConnectionShare {
    return { take: () => this.#take(backend), give: () => this.#give(backend) }
  }

  #take(backend: string): UpstreamError | undefined {
    const own = this.#byBackend.get(backend) ?? 0
    if (own >= this.#limits.backend || this.#total >= this.#limits.outbound) return new UpstreamError('limit', this.#describe(backend, own))
    this.#byBackend.set(backend, own + 1)
    this.#total++
    return undefined
  }

  #give(backend: string): void {
    this.#total--
    const own = (this.#byBackend.get(backend) ?? 0) - 1
    if (own > 0) this.#byBackend.set(backend, own)
    else this.#byBackend.delete(backend)
  }

  #describe(backend: string, own: number): string {
    const { backend: ofOne, outbound } = this.#limits
    const which = own >= ofOne ? `the limit of one backend is ${ofOne}` : `the limit of all backends is ${outbound}`
    return `${backend}: ${own} connections are open in this worker, ${which}; raise the limit of open files (RLIMIT_NOFILE) or of memory, or reduce the load`
  }
}
