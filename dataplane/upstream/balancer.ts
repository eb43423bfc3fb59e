import type { Endpoint } from '#gen/config/types.ts'

/** An endpoint with what traffic has taught us about it. Lives as long as its address is in the config. */
export interface EndpointState {
  readonly address: string
  readonly port: number
  /** `host:port` for logs; IPv6 in brackets. */
  readonly label: string
  draining: boolean
  /** EWMA of outcomes: 1 all good, 0 all bad. */
  health: number
  /** EWMA of seconds to the response head, successes only. */
  latencySeconds: number
  /** Requests in flight. */
  pending: number
}

const EWMA_ALPHA = 0.3

/** Higher is better (traffic.md §13). */
export function scoreOf(endpoint: EndpointState): number {
  return endpoint.health / (1 + endpoint.latencySeconds * (1 + 0.1 * endpoint.pending))
}

/** Records how a call to the endpoint went; latency counts for successes only. */
export function recordOutcome(endpoint: EndpointState, isHealthy: boolean, seconds: number): void {
  endpoint.health += EWMA_ALPHA * ((isHealthy ? 1 : 0) - endpoint.health)
  if (isHealthy) endpoint.latencySeconds += EWMA_ALPHA * (seconds - endpoint.latencySeconds)
}

const labelOf = (address: string, port: number): string => (address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`)

/** The endpoints of one destination, chosen by the power of two choices. Survives config changes: known addresses keep their state. */
export class Balancer {
  #active: EndpointState[] = []
  #draining: EndpointState[] = []
  readonly #random: () => number

  constructor(random: () => number = Math.random) {
    this.#random = random
  }

  update(endpoints: readonly Endpoint[]): void {
    const known = new Map([...this.#active, ...this.#draining].map((state) => [state.label, state]))
    const states = endpoints.map(({ address, port, draining }) => {
      const label = labelOf(address, port)
      const state = known.get(label) ?? { address, port, label, draining: false, health: 1, latencySeconds: 0, pending: 0 }
      state.draining = draining ?? false
      return state
    })
    this.#active = states.filter((state) => !state.draining)
    this.#draining = states.filter((state) => state.draining)
  }

  /** Undefined when there is no endpoint at all. `avoid` is passed over while there is another choice: retries go elsewhere. */
  pick(avoid?: EndpointState): EndpointState | undefined {
    const pool = this.#active.length > 0 ? this.#active : this.#draining
    const count = pool.length
    if (count <= 1) return pool[0]
    const first = pool[Math.floor(this.#random() * count)]
    const second = pool[Math.floor(this.#random() * count)]
    if (first === undefined || second === undefined) return first ?? second
    const best = scoreOf(first) >= scoreOf(second) ? first : second
    if (best !== avoid) return best
    const other = best === first ? second : first
    return other !== avoid ? other : pool[(pool.indexOf(best) + 1) % count]
  }

  get endpoints(): readonly EndpointState[] {
    return this.#active.length > 0 ? this.#active : this.#draining
  }
}
