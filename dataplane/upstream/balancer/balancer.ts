import { authorityOf } from '../../http/message.ts'
import { countOutcome, restore, type EndpointHealth, type Eviction } from './health.ts'
import { nearestOf, type PlacedEndpoint } from './locality.ts'

/** An endpoint with what traffic has taught us about it. Lives as long as its address is in the config. */
export interface EndpointState extends EndpointHealth {
  readonly address: string
  readonly port: number
  /** `host:port` for logs; IPv6 in brackets. */
  readonly label: string
  draining: boolean
  /** How far it is; only the nearest of those that can be used are. */
  distance: number
  /** EWMA of seconds to the response head, successes only. */
  latencySeconds: number
  /** Requests in flight. */
  pending: number
}

const EWMA_ALPHA = 0.3

/** Higher is better (traffic.md §13). */
export function scoreOf(endpoint: Pick<EndpointState, 'health' | 'latencySeconds' | 'pending'>): number {
  return endpoint.health / (1 + endpoint.latencySeconds * (1 + 0.1 * endpoint.pending))
}

/** Records how a call to the endpoint went; latency counts for successes only. */
export function recordOutcome(endpoint: Pick<EndpointState, 'health' | 'latencySeconds'>, isHealthy: boolean, seconds: number): void {
  endpoint.health += EWMA_ALPHA * ((isHealthy ? 1 : 0) - endpoint.health)
  if (isHealthy) endpoint.latencySeconds += EWMA_ALPHA * (seconds - endpoint.latencySeconds)
}

/** Records how a call to the endpoint went, and counts it. True when that evicts. */
export function settleOutcome(
  endpoint: EndpointHealth & Pick<EndpointState, 'latencySeconds'>,
  isHealthy: boolean,
  seconds: number,
  eviction: Eviction | undefined,
  nowMs: number,
): boolean {
  const healthBefore = endpoint.health
  recordOutcome(endpoint, isHealthy, seconds)
  return countOutcome(endpoint, isHealthy, healthBefore, eviction, nowMs)
}

function newState(address: string, port: number, label: string): EndpointState {
  return { address, port, label, draining: false, distance: 0, health: 1, failures: 0, evictions: 0, evicted: undefined, latencySeconds: 0, pending: 0 }
}

/** An endpoint was taken out, and for how long, or is back. */
export interface EvictionEvent {
  readonly kind: 'evicted' | 'back'
  /** `host:port`. */
  readonly endpoint: string
  /** Of the eviction. */
  readonly durationMs: number
  /** 0 to 1: when it was evicted, or that it is back with. */
  readonly health: number
}

export interface BalancerOptions {
  /** Uniform in [0, 1). */
  readonly random?: (() => number) | undefined
  /** Milliseconds of a clock that never goes back. */
  readonly nowMs?: (() => number) | undefined
  readonly onEviction?: ((event: EvictionEvent) => void) | undefined
}

/** The endpoints of one destination, chosen by the power of two choices. Survives config changes: known addresses keep their state. */
export class Balancer {
  #active: EndpointState[] = []
  #draining: EndpointState[] = []
  readonly #evicted = new Set<EndpointState>()
  /** Those of `#active` that are not evicted, and of them the nearest. */
  #available: readonly EndpointState[] = []
  readonly #random: () => number
  readonly #nowMs: () => number
  readonly #onEviction: BalancerOptions['onEviction']

  constructor({ random = Math.random, nowMs = () => performance.now(), onEviction }: BalancerOptions = {}) {
    this.#onEviction = onEviction
    this.#random = random
    this.#nowMs = nowMs
  }

  update(endpoints: readonly PlacedEndpoint[]): void {
    const known = new Map([...this.#active, ...this.#draining].map((state) => [state.label, state]))
    const states = endpoints.map(({ address, port, draining, distance }) => {
      const label = authorityOf(address, port)
      const state = known.get(label) ?? newState(address, port, label)
      state.draining = draining ?? false
      state.distance = distance ?? 0
      return state
    })
    this.#active = states.filter((state) => !state.draining)
    this.#draining = states.filter((state) => state.draining)
    const active = new Set(this.#active)
    for (const endpoint of this.#evicted) if (!active.has(endpoint)) this.#bringBack(endpoint)
    this.#available = this.#findAvailable()
  }

  /** Records how a call to the endpoint went and takes it out if that is what the policy says. */
  record(endpoint: EndpointState, isHealthy: boolean, seconds: number, eviction: Eviction | undefined): void {
    const nowMs = this.#nowMs()
    if (!settleOutcome(endpoint, isHealthy, seconds, eviction, nowMs)) return
    this.#evicted.add(endpoint)
    this.#onEviction?.({ kind: 'evicted', endpoint: endpoint.label, durationMs: (endpoint.evicted?.untilMs ?? nowMs) - nowMs, health: endpoint.health })
    this.#available = this.#findAvailable()
  }

  /** Ends all evictions: nobody is evicted without a policy. */
  restoreAll(): void {
    for (const endpoint of this.#evicted) this.#bringBack(endpoint)
    this.#available = this.#findAvailable()
  }

  /** Undefined when there is no endpoint at all; evicted ones are used when all are. `avoid` is passed over while there is another choice: retries go elsewhere. */
  pick(avoid?: EndpointState): EndpointState | undefined {
    const pool = this.#candidates()
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

  #candidates(): readonly EndpointState[] {
    if (this.#evicted.size > 0) this.#restoreDue(this.#nowMs())
    return this.#available.length > 0 ? this.#available : this.endpoints
  }

  #restoreDue(nowMs: number): void {
    const before = this.#evicted.size
    for (const endpoint of this.#evicted) if (endpoint.evicted === undefined || endpoint.evicted.untilMs <= nowMs) this.#bringBack(endpoint)
    if (this.#evicted.size !== before) this.#available = this.#findAvailable()
  }

  #bringBack(endpoint: EndpointState): void {
    restore(endpoint)
    this.#evicted.delete(endpoint)
    this.#onEviction?.({ kind: 'back', endpoint: endpoint.label, durationMs: 0, health: endpoint.health })
  }

  #findAvailable(): readonly EndpointState[] {
    return nearestOf(this.#evicted.size === 0 ? this.#active : this.#active.filter((endpoint) => !this.#evicted.has(endpoint)))
  }

  /** Whatever its state. */
  find(label: string): EndpointState | undefined {
    const isIt = (endpoint: EndpointState): boolean => endpoint.label === label
    return this.#active.find(isIt) ?? this.#draining.find(isIt)
  }

  get endpoints(): readonly EndpointState[] {
    return this.#active.length > 0 ? this.#active : this.#draining
  }
}
