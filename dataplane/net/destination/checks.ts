import { createHash } from 'node:crypto'
import type { EndpointState, EvictionEvent } from '../upstream/balancer/balancer.ts'
import type { EndpointCheck, HealthCheck } from '../upstream/balancer/check.ts'
import type { SharedCheck, SharedHealthTable } from '../upstream/balancer/shared-health.ts'
import type { Destination } from '../upstream/destination.ts'
import { probeEndpoint } from './probe.ts'

/** Beyond the time of the next check: until then no other worker checks. */
const LEASE_MARGIN_MS = 2000

interface ChecksOptions {
  /** Results of all workers, of which one makes each check; undefined: this thread handles all traffic. */
  readonly table?: SharedHealthTable | undefined
  readonly onChange?: ((destination: string, event: EvictionEvent) => void) | undefined
}

/**
 * Active checks of endpoints (traffic.md §13.5). Destinations whose checks of an endpoint would have equal results share one, which lasts as long as one
 * of them has the endpoint.
 */
export class HealthChecks {
  readonly #options: ChecksOptions
  readonly #checks = new Map<string, RunningCheck>()
  readonly #watched = new Map<Destination, Map<EndpointState, RunningCheck>>()

  constructor(options: ChecksOptions = {}) {
    this.#options = options
  }

  /** Follows a destination after each change of its config. */
  watch(destination: Destination): void {
    const before = this.#watched.get(destination)
    const { health, broken } = destination.settings
    const check = destination.isDynamic || destination.error !== undefined || broken !== undefined ? undefined : health?.active
    if (check === undefined && before === undefined) return
    const now = new Map<EndpointState, RunningCheck>()
    if (check !== undefined) {
      const key = `${destination.probeKey} ${check.key}`
      for (const endpoint of destination.endpoints) if (!endpoint.draining) now.set(endpoint, this.#join(key, check, destination, endpoint))
    }
    for (const [endpoint, running] of before ?? []) if (now.get(endpoint) !== running) this.#leave(running, endpoint)
    for (const [endpoint, running] of now) endpoint.check = running
    if (now.size === 0) this.#watched.delete(destination)
    else this.#watched.set(destination, now)
    destination.refresh()
  }

  /** A destination is not used any more. */
  forget(destination: Destination): void {
    const before = this.#watched.get(destination)
    if (before === undefined) return
    this.#watched.delete(destination)
    for (const [endpoint, running] of before) this.#leave(running, endpoint)
  }

  #join(key: string, check: HealthCheck, destination: Destination, endpoint: EndpointState): RunningCheck {
    // Keys have credentials.
    const name = createHash('sha256').update(`${key} ${endpoint.label}`).digest('base64')
    let running = this.#checks.get(name)
    if (running === undefined) this.#checks.set(name, (running = new RunningCheck(name, check, this.#options)))
    running.users.set(endpoint, destination)
    return running
  }

  #leave(running: RunningCheck, endpoint: EndpointState): void {
    if (endpoint.check === running) endpoint.check = undefined
    running.users.delete(endpoint)
    if (running.users.size > 0) return
    this.#checks.delete(running.name)
    running.stop()
  }
}

/** Checks one endpoint, unless another worker does. */
class RunningCheck implements EndpointCheck {
  readonly name: string
  /** The endpoint in each destination that has it. */
  readonly users = new Map<EndpointState, Destination>()
  readonly #check: HealthCheck
  readonly #onChange: ChecksOptions['onChange']
  readonly #shared: SharedCheck | undefined
  #isDownHere = false
  /** Checks in a row with the same result. */
  #passed = 0
  #failed = 0
  #problem: string | undefined
  #last: { readonly backend: string; readonly endpoint: string } = { backend: '', endpoint: '' }
  #isStopped = false
  #timer: NodeJS.Timeout

  constructor(name: string, check: HealthCheck, { table, onChange }: ChecksOptions) {
    this.name = name
    this.#check = check
    this.#onChange = onChange
    this.#shared = table?.openCheck(name)
    this.#timer = this.#startTimer(0)
  }

  get isDown(): boolean {
    return this.#shared?.isDown ?? this.#isDownHere
  }

  get problem(): string | undefined {
    return this.isDown ? this.#problem : undefined
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    // An endpoint that returns begins anew.
    if (this.#shared?.release() !== false && this.isDown) this.#change(false, 'unchecked')
  }

  #startTimer(ms: number): NodeJS.Timeout {
    return setTimeout(() => void this.#run(), ms + Math.random() * this.#check.jitterMs).unref()
  }

  async #run(): Promise<void> {
    const { intervalMs, jitterMs, timeoutMs } = this.#check
    const startedAtMs = performance.now()
    const [first] = this.users
    if (first !== undefined && this.#shared?.acquire(startedAtMs, intervalMs + jitterMs + timeoutMs + LEASE_MARGIN_MS) !== false) {
      const [endpoint, destination] = first
      this.#last = { backend: destination.name, endpoint: endpoint.label }
      await probeEndpoint(destination, endpoint, this.#check).then(
        (problem) => this.#settle(problem),
        () => undefined,
      )
    }
    if (!this.#isStopped) this.#timer = this.#startTimer(Math.max(0, intervalMs - (performance.now() - startedAtMs)))
  }

  #settle(problem: string | undefined): void {
    if (this.#isStopped) return
    this.#problem = problem ?? this.#problem
    this.#passed = problem === undefined ? this.#passed + 1 : 0
    this.#failed = problem === undefined ? 0 : this.#failed + 1
    const { healthyThreshold, unhealthyThreshold } = this.#check
    if (this.isDown ? this.#passed >= healthyThreshold : this.#failed >= unhealthyThreshold) this.#change(!this.isDown)
  }

  #change(isDown: boolean, kind: EvictionEvent['kind'] = isDown ? 'down' : 'up'): void {
    this.#isDownHere = isDown
    if (this.#shared !== undefined) this.#shared.isDown = isDown
    for (const destination of this.users.values()) destination.refresh()
    const { backend, endpoint } = this.#last
    this.#onChange?.(backend, { kind, endpoint, durationMs: 0, health: isDown ? 0 : 1, ...(isDown && { error: this.#problem }) })
  }
}
