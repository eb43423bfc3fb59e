import { Metadata, status, type ServerDuplexStream, type ServiceDefinition } from '@grpc/grpc-js'
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import type { RateLimitQuotaResponse, RateLimitQuotaUsageReports } from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import { RateLimitQuotaResponseSchema, RateLimitQuotaUsageReportsSchema } from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import { systemClock, type Clock } from '../serve/debounce.ts'
import { roleOf, type GrpcService } from '../serve/server.ts'
import type { Authenticate } from '../serve/session.ts'
import { findLimits, type BudgetLimit, type PolicyMessage } from './limits.ts'
import { QuotaPool, type StoredBucket } from './pool.ts'
import { readReport, toResponse } from './protocol.ts'

/** Where counters outlive the operator. */
export interface QuotaStore {
  /** What is stored of a Gateway, `<namespace>/<name>`. A rejection ends streams of the Gateway, which are opened again. */
  load(gateway: string): Promise<readonly StoredBucket[]>
  /** Replaces what is stored. Rejects if it was changed by another operator since `load`. */
  save(gateway: string, buckets: readonly StoredBucket[]): Promise<void>
}

export interface QuotaServerOptions {
  /** As that of the config stream. */
  readonly authenticate?: Authenticate | undefined
  /** Whether this replica of the operator divides budgets: one does. */
  readonly isLeader?: () => boolean
  /** Default: counters are lost with the process, except what replicas report again. */
  readonly store?: QuotaStore | undefined
  readonly onError?: (gateway: string, error: unknown) => void
  /** A key of a limit has reached a percentage of `alertAt`. Called once for each key and window. */
  readonly onAlert?: (gateway: string, limit: BudgetLimit, percent: number) => void
  readonly clock?: Clock
  /** Milliseconds since 1970. */
  readonly epochMs?: () => number
}

export interface QuotaServer {
  readonly service: GrpcService
  /** Takes the limits of a translation. */
  publish(config: { readonly gateways: ReadonlyMap<string, readonly PolicyMessage[]> }): void
  stats(): { readonly streams: number; readonly buckets: number; readonly reports: number }
  /** Stores all counters, and ends the streams. */
  close(): Promise<void>
}

type Call = ServerDuplexStream<RateLimitQuotaUsageReports, RateLimitQuotaResponse>

const SAVE_MS = 5_000
const NOT_LEADING = 'this replica of the operator does not lead'
/** Time for a replica to send its first report. */
const OPEN_MS = 10_000

const definition = {
  streamRateLimitQuotas: {
    path: '/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas',
    requestStream: true,
    responseStream: true,
    requestSerialize: (reports: RateLimitQuotaUsageReports) => Buffer.from(toBinary(RateLimitQuotaUsageReportsSchema, reports)),
    requestDeserialize: (bytes: Buffer) => fromBinary(RateLimitQuotaUsageReportsSchema, bytes),
    responseSerialize: (response: RateLimitQuotaResponse) => Buffer.from(toBinary(RateLimitQuotaResponseSchema, response)),
    responseDeserialize: (bytes: Buffer) => fromBinary(RateLimitQuotaResponseSchema, bytes),
  },
} satisfies ServiceDefinition

/** The state of one Gateway. */
interface Domain {
  readonly gateway: string
  pool: QuotaPool
  /** Those that `limits` were found in. */
  messages: readonly PolicyMessage[]
  limits: ReadonlyMap<string, BudgetLimit>
  /** Resolves when what was stored is restored. */
  loading: Promise<void> | undefined
  savedChanges: number
  saving: Promise<void>
}

const createPool = (domain: Pick<Domain, 'limits'>): QuotaPool => new QuotaPool((name) => domain.limits.get(name))

/** Makes the rate limit quota service of the operator: it divides the budgets with scope Gateway among data planes (operator.md §6.7). */
export const createQuotaServer = (options: QuotaServerOptions = {}): QuotaServer => new Server(options)

class Server implements QuotaServer {
  readonly service: GrpcService = { definition, implementation: { streamRateLimitQuotas: (call: Call) => this.#open(call) } }
  readonly #options: QuotaServerOptions
  readonly #isLeader: () => boolean
  readonly #clock: Clock
  readonly #epochMs: () => number
  /** By role. */
  readonly #domains = new Map<string, Domain>()
  /** Streams, with what is to be done at their end. */
  readonly #calls = new Map<Call, () => void>()
  #reports = 0
  #isClosing = false
  #cancelSave = (): void => undefined

  constructor(options: QuotaServerOptions) {
    this.#options = options
    this.#isLeader = options.isLeader ?? (() => true)
    this.#clock = options.clock ?? systemClock
    this.#epochMs = options.epochMs ?? (() => Date.now())
    this.#saveLater()
  }

  publish({ gateways }: Parameters<QuotaServer['publish']>[0]): void {
    const roles = new Set<string>()
    for (const [gateway, messages] of gateways) {
      const role = roleOf(gateway)
      roles.add(role)
      const known = this.#domains.get(role)
      if (known?.messages === messages) continue
      const state = { messages, limits: findLimits(messages) }
      if (known === undefined)
        this.#domains.set(role, Object.assign(state, { gateway, pool: createPool(state), loading: undefined, savedChanges: 0, saving: Promise.resolve() }))
      else Object.assign(known, state)
    }
    for (const role of this.#domains.keys()) if (!roles.has(role)) this.#domains.delete(role)
  }

  stats(): ReturnType<QuotaServer['stats']> {
    const buckets = this.#domains.values().reduce((sum, { pool }) => sum + pool.size, 0)
    return { streams: this.#calls.size, buckets, reports: this.#reports }
  }

  async close(): Promise<void> {
    this.#isClosing = true
    this.#cancelSave()
    await Promise.all(this.#domains.values().map((domain) => this.#save(domain)))
    for (const call of this.#calls.keys()) end(call, status.UNAVAILABLE, 'the operator is shutting down')
  }

  #open(call: Call): void {
    this.#calls.set(call, () => undefined)
    const cancel = this.#clock.after(OPEN_MS, () => end(call, status.DEADLINE_EXCEEDED, `no report within ${OPEN_MS} ms`))
    const forget = (): void => {
      cancel()
      this.#calls.get(call)?.()
      this.#calls.delete(call)
    }
    for (const event of ['close', 'cancelled', 'error']) call.on(event, forget)
    call.on('end', () => {
      forget()
      call.end()
    })
    if (this.#isClosing) return end(call, status.UNAVAILABLE, 'the operator is shutting down')
    if (!this.#isLeader()) return end(call, status.UNAVAILABLE, NOT_LEADING)
    call.once('data', (first: RateLimitQuotaUsageReports) => {
      call.pause()
      cancel()
      this.#follow(call, first).catch((error: unknown) => {
        this.#options.onError?.(first.domain, error)
        end(call, status.INTERNAL, 'the report cannot be handled')
      })
    })
  }

  /** Authenticates a stream by its first report, and answers all of them. */
  async #follow(call: Call, first: RateLimitQuotaUsageReports): Promise<void> {
    const { authenticate } = this.#options
    const { domain: role } = first
    if (authenticate !== undefined) {
      const outcome = await authenticate(call.metadata, role).catch(() => ({ isAllowed: false, message: 'authentication failed' }) as const)
      if (!outcome.isAllowed) return end(call, status.UNAUTHENTICATED, outcome.message)
    }
    const domain = this.#domains.get(role)
    if (domain === undefined) return end(call, status.UNAVAILABLE, `there is no Gateway ${JSON.stringify(role)}, or its config is not complete yet`)
    const { replica } = readReport(first)
    if (replica === undefined || replica.length > 256)
      return end(call, status.INVALID_ARGUMENT, 'the first bucket must be {"replica": <id of the process, at most 256 characters>}')
    try {
      await this.#load(domain)
    } catch (error) {
      this.#forget(domain, error)
      return end(call, status.UNAVAILABLE, 'the counters cannot be read now')
    }
    if (!this.#calls.has(call)) return undefined
    const { pool } = domain
    const connection = pool.connect(replica)
    this.#calls.set(call, () => pool.disconnect(connection))
    const answer = (report: RateLimitQuotaUsageReports): void => {
      if (!this.#isLeader() || domain.pool !== pool) return end(call, status.UNAVAILABLE, NOT_LEADING)
      this.#reports++
      call.write(toResponse(replica, pool.report(connection, readReport(report).usages, this.#epochMs())))
      for (const { limit, percent } of pool.takeAlerts()) {
        const found = domain.limits.get(limit)
        if (found !== undefined) this.#options.onAlert?.(domain.gateway, found, percent)
      }
    }
    call.sendMetadata(new Metadata())
    answer(first)
    call.on('data', answer)
    call.resume()
  }

  #load(domain: Domain): Promise<void> {
    return (domain.loading ??= Promise.resolve(this.#options.store?.load(domain.gateway)).then((stored = []) => {
      domain.pool.restore(stored, this.#epochMs())
      domain.savedChanges = domain.pool.changes
    }))
  }

  /** What is stored is read again, and what is known here stays. */
  #forget(domain: Domain, error: unknown): void {
    this.#options.onError?.(domain.gateway, error)
    domain.loading = undefined
  }

  /** Another operator divides the budgets now, so that what is known here is out of date. */
  #reset(domain: Domain): void {
    if (domain.pool.size > 0) domain.pool = createPool(domain)
    domain.loading = undefined
    domain.savedChanges = 0
  }

  #save(domain: Domain): Promise<void> {
    const { store } = this.#options
    domain.saving = domain.saving.then(async () => {
      const { pool, gateway } = domain
      const { changes } = pool
      if (store === undefined || changes === domain.savedChanges || !this.#isLeader()) return
      try {
        await this.#load(domain)
        pool.tidy(this.#epochMs())
        await store.save(gateway, pool.store())
        domain.savedChanges = changes
      } catch (error) {
        this.#forget(domain, error)
      }
    })
    return domain.saving
  }

  #saveLater(): void {
    this.#cancelSave = this.#clock.after(SAVE_MS, () => {
      for (const domain of this.#domains.values()) {
        domain.pool.tidy(this.#epochMs())
        if (this.#isLeader()) void this.#save(domain)
        else this.#reset(domain)
      }
      this.#saveLater()
    })
  }
}

const end = (call: Call, code: status, details: string): void => void call.emit('error', Object.assign(new Error(details), { code, details }))
