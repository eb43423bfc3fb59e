import { fetchDestination } from '../../net/callout/http.ts'
import { Destination } from '../../net/upstream/destination.ts'
import type { EndpointState } from '../../net/upstream/balancer/balancer.ts'
import type { ModelServerBalancing } from '../../net/upstream/balancer/strategy.ts'
import type { EndpointPool } from '../../net/upstream/hooks.ts'
import type { SharedCells } from '../../runtime/shared-cells.ts'
import { ServerChooser } from './choose.ts'
import { dialects, parseMetrics } from './metrics.ts'
import { ModelServer } from './server.ts'

/** Between two reads of the metrics of one server; a pool of more than 200 servers reads at most 200 in a second. */
const INTERVAL_MS = 1000
const PER_SERVER_MS = 5
/** Metrics of a busy vLLM server have about 200 KB. */
const LIMIT_BYTES = 2 * 1024 * 1024
const TIMEOUT_MS = 2000
/** Metrics that are older are forgotten. */
const STALE_INTERVALS = 5
/** Without requests for so long, metrics are not read. */
const IDLE_MS = 30_000

type ServerSettings = Pick<ModelServerBalancing, 'engine' | 'metricsPath'>

/** The model servers of one pool: which may be picked, and the loop that reads their metrics while requests arrive. */
export class ModelServers {
  readonly chooser = new ServerChooser()
  readonly #pool: EndpointPool
  readonly #cells: SharedCells | undefined
  readonly #known = new Map<EndpointState, ModelServer>()
  #available: readonly EndpointState[] = []
  #eligible: readonly ModelServer[] = []
  #settings: ServerSettings
  #usedAtMs = 0
  #timer: NodeJS.Timeout | undefined
  #next = 0

  constructor(pool: EndpointPool, settings: ServerSettings, cells: SharedCells | undefined) {
    this.#pool = pool
    this.#settings = settings
    this.#cells = cells
  }

  /** All servers of the config. */
  get all(): IterableIterator<ModelServer> {
    return this.#known.values()
  }

  find(label: string): ModelServer | undefined {
    const endpoint = this.#pool.endpointAt(label)
    return endpoint && this.#known.get(endpoint as EndpointState)
  }

  /** The servers that may be picked. Reading metrics begins, or goes on. */
  use(settings: ServerSettings, nowMs: number): readonly ModelServer[] {
    this.#settings = settings
    const { available } = this.#pool
    if (available !== this.#available) this.#update(available)
    this.#usedAtMs = nowMs
    if (this.#timer === undefined && this.#pool instanceof Destination) this.#schedule(this.#pool)
    return this.#eligible
  }

  #update(available: readonly EndpointState[]): void {
    const { endpoints, name } = this.#pool
    const present = new Set(endpoints)
    for (const [endpoint, server] of this.#known) {
      server.isEligible = false
      if (present.has(endpoint)) continue
      server.isGone = true
      this.#known.delete(endpoint)
    }
    for (const endpoint of endpoints) {
      if (this.#known.has(endpoint)) continue
      this.#known.set(
        endpoint,
        new ModelServer(
          endpoint,
          this.#cells?.open(`server ${name} ${endpoint.label}`, () => undefined),
        ),
      )
    }
    this.#available = available
    this.#eligible = available.flatMap((endpoint) => this.#known.get(endpoint) ?? [])
    for (const server of this.#eligible) server.isEligible = true
    this.chooser.prefixes.resize(this.#eligible.length)
  }

  get #intervalMs(): number {
    return Math.max(INTERVAL_MS, this.#known.size * PER_SERVER_MS)
  }

  /** One server after the other, so that their metrics are read at different times. */
  #schedule(destination: Destination): void {
    const ms = (this.#intervalMs / Math.max(1, this.#known.size)) * (0.5 + Math.random())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      const nowMs = performance.now()
      if (nowMs - this.#usedAtMs > IDLE_MS) return
      const servers = [...this.#known.values()]
      const server = servers[this.#next++ % servers.length]
      if (server !== undefined && server.claimScrape(nowMs, this.#intervalMs * 0.9)) void this.#scrape(destination, server)
      this.#schedule(destination)
    }, ms)
    this.#timer.unref()
  }

  async #scrape(destination: Destination, server: ModelServer): Promise<void> {
    const { engine, metricsPath } = this.#settings
    const target = metricsPath ?? (engine === undefined ? '/metrics' : dialects[engine].path)
    server.expire(performance.now(), STALE_INTERVALS * this.#intervalMs)
    try {
      const options = { pinned: server.endpoint, timeoutMs: TIMEOUT_MS, limitBytes: LIMIT_BYTES, isJudgedByCaller: true }
      const { status, body } = await fetchDestination(destination, { method: 'GET', target }, options)
      const metrics = status === 200 ? parseMetrics(body.toString('latin1'), engine) : undefined
      if (metrics !== undefined) server.store(metrics, performance.now())
      else server.fail(status === 200 ? 'unsupported' : 'missing')
    } catch {
      // A request that waits for a busy server says the same; the server is avoided while others respond.
      server.fail('unreachable')
    }
  }
}
