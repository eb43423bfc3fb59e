import { authorityOf } from '../../../http/message.ts'
import { countOutcome, EWMA_ALPHA, restore, type EndpointHealth, type Eviction, type SharedHealth } from './health.ts'
import type { EndpointCheck } from './check.ts'
import { hashText } from './hash.ts'
import { nearestOf, type PlacedEndpoint } from './locality.ts'
import { pickByKey, type LoadBalancing } from './strategy.ts'

/** An endpoint with its measured health, latency and load. Lives as long as its address is in the config. */
export interface EndpointState extends EndpointHealth {
  readonly address: string
  readonly port: number
  /** `host:port` for logs; IPv6 in brackets. */
  readonly label: string
  /** Of the label, for consistent hashing. */
  readonly hash: number
  /** When it joined others that were known before; -Infinity: with them. */
  addedAtMs: number
  draining: boolean
  /** Undefined: it is not checked. */
  check: EndpointCheck | undefined
  /** Distance; only the nearest of the available endpoints are used. */
  distance: number
  /** EWMA of seconds to the response head, successes only. */
  latencySeconds: number
  /** Requests in flight. */
  pending: number
}

/** Score of an endpoint; higher is better (traffic.md §13). */
export function scoreOf(endpoint: Pick<EndpointState, 'health' | 'latencySeconds' | 'pending'>): number {
  return endpoint.health / (1 + endpoint.latencySeconds * (1 + 0.1 * endpoint.pending))
}

/** Updates health and, for successes, latency with the outcome of a call. */
export function recordOutcome(endpoint: Pick<EndpointState, 'health' | 'latencySeconds'>, isHealthy: boolean, seconds: number): void {
  endpoint.health += EWMA_ALPHA * ((isHealthy ? 1 : 0) - endpoint.health)
  if (isHealthy) recordLatency(endpoint, seconds)
}

function recordLatency(endpoint: Pick<EndpointState, 'latencySeconds'>, seconds: number): void {
  endpoint.latencySeconds += EWMA_ALPHA * (seconds - endpoint.latencySeconds)
}

/** Records and counts the outcome of a call. Returns true if the endpoint is evicted by it. */
export function settleOutcome(
  endpoint: EndpointHealth & Pick<EndpointState, 'latencySeconds'>,
  isHealthy: boolean,
  seconds: number,
  eviction: Eviction | undefined,
  nowMs: number,
  status: number,
): boolean {
  if (endpoint.shared !== undefined) {
    if (isHealthy) recordLatency(endpoint, seconds)
    return endpoint.shared.settle(endpoint, isHealthy, eviction, nowMs, status)
  }
  const healthBefore = endpoint.health
  recordOutcome(endpoint, isHealthy, seconds)
  return countOutcome(endpoint, isHealthy, healthBefore, eviction, nowMs, status)
}

function newState(address: string, port: number, label: string): EndpointState {
  const health = { health: 1, failures: 0, evictions: 0, interval: 0n, evicted: undefined, shared: undefined, check: undefined }
  return { address, port, label, hash: hashText(label), addedAtMs: -Infinity, draining: false, distance: 0, ...health, latencySeconds: 0, pending: 0 }
}

/** Whether an endpoint is evicted or fails its checks. */
export const isOut = ({ evicted, check }: Pick<EndpointState, 'evicted' | 'check'>): boolean => evicted !== undefined || check?.isDown === true

/** An endpoint was evicted or returned; its checks fail, pass again, or ended while they failed. */
export interface EvictionEvent {
  readonly kind: 'evicted' | 'back' | 'down' | 'up' | 'unchecked'
  /** `host:port`. */
  readonly endpoint: string
  /** Duration of the eviction; 0 on return. */
  readonly durationMs: number
  /** Health at the eviction or after the return, 0 to 1. */
  readonly health: number
  /** Why checks fail. */
  readonly error?: string | undefined
}

/** What was known when an endpoint was picked, for traces. */
export interface PickNotes {
  /** The two random ones; empty if there was no choice. */
  compared: readonly EndpointState[]
  /** Endpoints of the config that are not draining, or all if all are. */
  endpoints: readonly EndpointState[]
  /** The nearest of them that are not evicted; evicted ones too below the panic threshold. */
  available: readonly EndpointState[]
  /** How it was picked, unless two were compared. */
  by?: string
}

/** Dependencies of a balancer. */
export interface BalancerOptions {
  /** Uniform in [0, 1). */
  readonly random?: (() => number) | undefined
  /** Monotonic clock in milliseconds. */
  readonly nowMs?: (() => number) | undefined
  readonly onEviction?: ((event: EvictionEvent) => void) | undefined
  /** Health that all workers measure together; undefined: this thread handles all traffic. */
  readonly shared?: SharedHealths | undefined
}

/** The shared health of the endpoints of a destination, by label. */
export interface SharedHealths {
  /** Changes with each eviction and return. */
  readonly epoch: number
  open(label: string): SharedHealth | undefined
  /** As `open`, if another worker has opened it. */
  find(label: string): SharedHealth | undefined
}

/** Picks endpoints of a destination by the power of two choices. Addresses keep their state over config changes. */
export class Balancer {
  #active: EndpointState[] = []
  #draining: EndpointState[] = []
  readonly #evicted = new Set<EndpointState>()
  /** The nearest of the active endpoints that are not out. */
  #available: readonly EndpointState[] = []
  readonly #random: () => number
  readonly #nowMs: () => number
  readonly #onEviction: BalancerOptions['onEviction']
  readonly #shared: SharedHealths | undefined
  #epoch = 0
  #balancing: LoadBalancing | undefined
  /** Of RoundRobin; undefined: not started. */
  #next: number | undefined
  /** Until then, some endpoints have less than their share. */
  #warmUntilMs = -Infinity

  constructor({ random = Math.random, nowMs = () => performance.now(), onEviction, shared }: BalancerOptions = {}) {
    this.#onEviction = onEviction
    this.#shared = shared
    this.#random = random
    this.#nowMs = nowMs
  }

  update(endpoints: readonly PlacedEndpoint[], balancing?: LoadBalancing): void {
    this.#balancing = balancing
    const known = new Map([...this.#active, ...this.#draining].map((state) => [state.label, state]))
    const states = endpoints.map(({ address, port, draining, distance }) => {
      const label = authorityOf(address, port)
      const state = known.get(label) ?? this.#join(newState(address, port, label), known.size)
      state.draining = draining ?? false
      state.distance = distance ?? 0
      return state
    })
    this.#active = states.filter((state) => !state.draining)
    this.#draining = states.filter((state) => state.draining)
    const active = new Set(this.#active)
    for (const endpoint of this.#evicted) if (!active.has(endpoint)) this.#endEviction(endpoint)
    const present = new Set(states)
    for (const endpoint of known.values()) if (!present.has(endpoint)) endpoint.shared?.reset()
    this.#available = this.#findAvailable()
    // Evictions of an endpoint before it was added here.
    this.#epoch = 0
  }

  /** Records the outcome of a call and evicts the endpoint if the policy requires it. `status` of the response; 0: the call failed. */
  record(endpoint: EndpointState, isHealthy: boolean, seconds: number, eviction: Eviction | undefined, status = 0): void {
    const nowMs = this.#nowMs()
    if (eviction !== undefined) endpoint.shared ??= this.#shared?.open(endpoint.label)
    const isKept = !isHealthy && eviction?.maxEvicted !== undefined && this.#hasMostOut(eviction.maxEvicted)
    if (!settleOutcome(endpoint, isHealthy, seconds, isKept ? undefined : eviction, nowMs, status)) return
    this.#evicted.add(endpoint)
    this.#onEviction?.({ kind: 'evicted', endpoint: endpoint.label, durationMs: (endpoint.evicted?.untilMs ?? nowMs) - nowMs, health: endpoint.health })
    this.#available = this.#findAvailable()
  }

  /** Whether no further endpoint may be evicted. */
  #hasMostOut(share: number): boolean {
    // Evictions of other workers, and those that are over.
    this.#candidates()
    let out = 0
    for (const endpoint of this.#active) if (isOut(endpoint)) out++
    return out >= Math.max(1, Math.floor(share * this.#active.length))
  }

  /** Results of checks have changed. */
  refresh(): void {
    this.#available = this.#findAvailable()
  }

  /** All endpoints fail their checks. */
  get isDown(): boolean {
    return this.#active.length > 0 && this.#active.every(({ check }) => check?.isDown === true)
  }

  /** Ends all evictions, for a destination without an eviction policy. */
  restoreAll(): void {
    for (const endpoint of this.#evicted) this.#endEviction(endpoint)
    this.#available = this.#findAvailable()
  }

  /**
   * Picks an endpoint. Undefined if there is none at all; evicted endpoints are used if all are evicted. `avoid`, the endpoint of the failed
   * attempt, is picked only if there is no other. `notes`: receives what was compared. `key`: of the request, for ConsistentHash.
   */
  pick(avoid?: EndpointState, notes?: PickNotes, key?: number): EndpointState | undefined {
    const pool = this.#candidates()
    if (notes !== undefined) Object.assign(notes, { endpoints: this.endpoints, available: this.#available })
    const count = pool.length
    if (count <= 1) return pool[0]
    const chosen = this.#balancing && this.#pickBy(this.#balancing, pool, avoid, key, notes)
    if (chosen !== undefined) return chosen
    const first = pool[Math.floor(this.#random() * count)]
    const second = pool[Math.floor(this.#random() * count)]
    if (first === undefined || second === undefined) return first ?? second
    if (notes !== undefined) notes.compared = [first, second]
    const best = scoreOf(first) * this.#warmth(first) >= scoreOf(second) * this.#warmth(second) ? first : second
    if (best !== avoid) return best
    const other = best === first ? second : first
    return other !== avoid ? other : pool[(pool.indexOf(best) + 1) % count]
  }

  /** Picks by a strategy other than LeastRequest; undefined: LeastRequest decides. */
  #pickBy({ type, hash }: LoadBalancing, pool: readonly EndpointState[], avoid?: EndpointState, key?: number, notes?: PickNotes): EndpointState | undefined {
    if (type === 'ConsistentHash') {
      if (notes !== undefined && key !== undefined) notes.by = 'the one of the key among'
      return key === undefined ? undefined : pickByKey(pool, key, hash?.maxLoad, avoid)
    }
    if (type === 'LeastRequest' || type === 'ModelServer') return undefined
    if (notes !== undefined) notes.by = type === 'RoundRobin' ? 'the next of' : 'a random one of'
    const { length } = pool
    // Each turn offers the request to one endpoint, which accepts it as far as it is warm.
    for (let turn = 0; turn < 2 * length; turn++) {
      const at = type === 'RoundRobin' ? (this.#next = ((this.#next ?? Math.floor(this.#random() * length)) + 1) % length) : Math.floor(this.#random() * length)
      const endpoint = pool[at]
      if (endpoint === undefined || endpoint === avoid) continue
      const warmth = this.#warmth(endpoint)
      if (warmth >= 1 || this.#random() < warmth) return endpoint
    }
    return undefined
  }

  /** A new endpoint; `others`: number of those that were known before. */
  #join(state: EndpointState, others: number): EndpointState {
    const windowMs = this.#balancing?.slowStartMs
    if (windowMs === undefined || others === 0) return state
    state.addedAtMs = this.#nowMs()
    this.#warmUntilMs = state.addedAtMs + windowMs
    return state
  }

  /** The share of an endpoint in its slow start, 0.1 to 1 (Envoy, slow start with aggression 1). */
  #warmth({ addedAtMs }: EndpointState): number {
    if (this.#warmUntilMs === -Infinity) return 1
    const windowMs = this.#balancing?.slowStartMs ?? 0
    const nowMs = this.#nowMs()
    if (windowMs > 0 && nowMs < this.#warmUntilMs) return Math.min(1, Math.max(0.1, (nowMs - addedAtMs) / windowMs))
    this.#warmUntilMs = -Infinity
    return 1
  }

  /** Picks an endpoint that is not in `failed`; undefined if there is none. */
  pickOther(failed: ReadonlySet<EndpointState>): EndpointState | undefined {
    const pool = this.#candidates().filter((endpoint) => !failed.has(endpoint))
    return pool[Math.floor(this.#random() * pool.length)]
  }

  #candidates(): readonly EndpointState[] {
    if (this.#shared !== undefined && this.#shared.epoch !== this.#epoch) this.#sync(this.#shared)
    if (this.#evicted.size > 0) this.#endExpiredEvictions(this.#nowMs())
    return this.#available.length > 0 ? this.#available : this.endpoints
  }

  /** Takes over evictions and returns of other workers, which report them. */
  #sync(shared: SharedHealths): void {
    this.#epoch = shared.epoch
    for (const endpoint of this.#active) {
      endpoint.shared ??= shared.find(endpoint.label)
      endpoint.shared?.sync(endpoint)
      if (endpoint.evicted === undefined) this.#evicted.delete(endpoint)
      else this.#evicted.add(endpoint)
    }
    this.#available = this.#findAvailable()
  }

  #endExpiredEvictions(nowMs: number): void {
    const before = this.#evicted.size
    for (const endpoint of this.#evicted) if (endpoint.evicted === undefined || endpoint.evicted.untilMs <= nowMs) this.#endEviction(endpoint)
    if (this.#evicted.size !== before) this.#available = this.#findAvailable()
  }

  #endEviction(endpoint: EndpointState): void {
    const isEnded = restore(endpoint)
    if (endpoint.evicted === undefined) this.#evicted.delete(endpoint)
    if (isEnded) this.#onEviction?.({ kind: 'back', endpoint: endpoint.label, durationMs: 0, health: endpoint.health })
  }

  #findAvailable(): readonly EndpointState[] {
    const others = this.#active.filter((endpoint) => !this.#evicted.has(endpoint) && endpoint.check?.isDown !== true)
    if (others.length === this.#active.length) return nearestOf(this.#active)
    // Those that are left would not survive the load of all.
    const isPanic = others.length < (this.#balancing?.panicThreshold ?? 0) * this.#active.length
    return nearestOf(isPanic ? this.#active : others)
  }

  /** The endpoint with that label, also if it is draining or farther than others; undefined if it is out while others are not. */
  availableAt(label: string): EndpointState | undefined {
    this.#candidates()
    const endpoint = this.find(label)
    return endpoint === undefined || !isOut(endpoint) || this.#available.length === 0 || this.#available.includes(endpoint) ? endpoint : undefined
  }

  /** The endpoint with that label, also if it is evicted or draining. */
  find(label: string): EndpointState | undefined {
    const matches = (endpoint: EndpointState): boolean => endpoint.label === label
    return this.#active.find(matches) ?? this.#draining.find(matches)
  }

  /** Active and draining endpoints, with evictions and returns of other workers. */
  get all(): readonly EndpointState[] {
    this.#candidates()
    return [...this.#active, ...this.#draining]
  }

  /** Endpoints that may be picked. The list is replaced when its content changes. */
  get available(): readonly EndpointState[] {
    return this.#candidates()
  }

  get endpoints(): readonly EndpointState[] {
    return this.#active.length > 0 ? this.#active : this.#draining
  }
}
