import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { setTimeout as waitMs } from 'node:timers/promises'
import { Metadata, status, type ClientDuplexStream, type ServiceError } from '@grpc/grpc-js'
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import type { RateLimitQuotaResponse, RateLimitQuotaUsageReports } from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import { RateLimitQuotaResponseSchema, RateLimitQuotaUsageReportsSchema } from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import { roleOf, type NodeIdentity } from '../../config/stream/node.ts'
import { createClient, parseServerAddress } from '../../config/stream/server.ts'
import { backoffDelay, withJitter } from '../../runtime/backoff.ts'
import type { ShareKeeper } from './keeper.ts'
import { readResponse, toReport } from './protocol.ts'

export interface QuotaStreamOptions {
  /** XDS_ADDRESS. */
  readonly address: string
  readonly node: NodeIdentity
  /** As for the config stream. */
  readonly tokenFile?: string | undefined
  readonly rootCaFile?: string | undefined
  readonly keeper: ShareKeeper
  /** Default: 3 s, 10 s. */
  readonly timeouts?: QuotaTimeouts
  /** The server responds, for the first time or again. */
  onConnected(): void
  onDisconnected(cause: string): void
}

interface QuotaTimeouts {
  /** Requests do not wait for a server that does not respond for so long. Its response counts nevertheless: a loaded operator is late on each stream. */
  readonly silentMs: number
  /** A server that does not respond for so long is given up. */
  readonly responseMs: number
}

type Call = ClientDuplexStream<RateLimitQuotaUsageReports, RateLimitQuotaResponse>

const PATH = '/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas'
/** Milliseconds between reports if nothing is urgent. */
const REPORT_MS = 200
/** Milliseconds between reports while requests wait for units that others have. */
const HUNGRY_MS = 50
const TIMEOUTS: QuotaTimeouts = { silentMs: 3_000, responseMs: 10_000 }
const BACKOFF = { initialMs: 50, maxMs: 2_000 }

/** Reports what is used of budgets to the quota server, and receives shares, until `close`. Each response is followed by a report, and a report by a response. */
export class QuotaStream {
  readonly #options: QuotaStreamOptions
  readonly #replica = randomUUID()
  readonly #abort = new AbortController()
  readonly #running: Promise<void>
  /** Sends the next report at once; set between a response and the next report. */
  #sendNow: (() => void) | undefined
  #failures = 0

  constructor(options: QuotaStreamOptions) {
    this.#options = options
    this.#running = this.#run()
  }

  /** Sends a report as soon as the last response has arrived. */
  hurry(): void {
    this.#sendNow?.()
  }

  async close(): Promise<void> {
    this.#abort.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#abort
    const { keeper, onDisconnected } = this.#options
    while (!signal.aborted) {
      const cause = await this.#connect().catch((error: unknown) => (error instanceof Error ? error.message : String(error)))
      this.#sendNow = undefined
      if (signal.aborted) return
      keeper.disconnected()
      onDisconnected(cause)
      await waitMs(withJitter(backoffDelay(this.#failures++, BACKOFF), Math.random), undefined, { signal }).catch(() => undefined)
    }
  }

  /** Runs one stream until it ends; returns the cause. */
  async #connect(): Promise<string> {
    const { address, tokenFile, rootCaFile } = this.#options
    const metadata = new Metadata()
    if (tokenFile !== undefined) metadata.set('authorization', `Bearer ${(await readFile(tokenFile, 'utf8')).trim()}`)
    const client = await createClient(parseServerAddress(address), rootCaFile)
    try {
      if (this.#abort.signal.aborted) return 'closed'
      return await this.#follow(client.makeBidiStreamRequest(PATH, encodeReport, decodeResponse, metadata))
    } finally {
      client.close()
    }
  }

  #follow(call: Call): Promise<string> {
    const { keeper, node, onConnected, onDisconnected, timeouts: { silentMs, responseMs } = TIMEOUTS } = this.#options
    const { promise, resolve } = Promise.withResolvers<string>()
    const { signal } = this.#abort
    const role = roleOf(node)
    let cancel = (): void => undefined
    let isConnected = false
    let isSilent = false
    let sentMs = performance.now()
    const end = (cause: string): void => {
      cancel()
      signal.removeEventListener('abort', finish)
      resolve(cause)
    }
    const awaitResponse = (): void => {
      cancel = afterInput(silentMs, () => {
        isSilent = true
        keeper.disconnected()
        onDisconnected(`no response within ${silentMs} ms`)
        cancel = afterInput(responseMs - silentMs, () => {
          end(`no response within ${responseMs} ms`)
          call.cancel()
        })
      })
    }
    const report = (isEmpty = false): void => {
      cancel()
      this.#sendNow = undefined
      const nowMs = performance.now()
      call.write(toReport(role, this.#replica, isEmpty ? [] : keeper.takeReport(), nowMs - sentMs))
      sentMs = nowMs
      awaitResponse()
    }
    // What was used last is reported before the end.
    const finish = (): void => {
      cancel()
      this.#sendNow = undefined
      if (isConnected) call.write(toReport(role, this.#replica, keeper.takeReport(), performance.now() - sentMs))
      call.end()
      cancel = afterInput(200, () => call.cancel())
    }
    signal.addEventListener('abort', finish)
    call.on('data', (response: RateLimitQuotaResponse) => {
      cancel()
      this.#failures = 0
      if (!isConnected) keeper.connected()
      else if (isSilent) keeper.resumed()
      if (!isConnected || isSilent) onConnected()
      isConnected = true
      isSilent = false
      keeper.apply(readResponse(response))
      if (signal.aborted) return
      keeper.endWaits()
      if (keeper.isUrgent) return report()
      cancel = afterInput(keeper.isHungry ? HUNGRY_MS : REPORT_MS, report)
      this.#sendNow = report
    })
    call.on('error', (error: ServiceError) => end(`${status[error.code] ?? error.code}: ${error.details}`))
    call.on('end', () => end('the server ended the stream'))
    // Nothing is given back before a server has accepted the stream.
    report(true)
    return promise
  }
}

/** Calls back after a time unless it is cancelled. What has arrived while the thread was busy is read before. */
function afterInput(ms: number, callback: () => void): () => void {
  let last: NodeJS.Immediate | undefined
  const timer = setTimeout(() => (last = setImmediate(callback)), ms)
  return () => {
    clearTimeout(timer)
    clearImmediate(last)
  }
}

const encodeReport = (report: RateLimitQuotaUsageReports): Buffer => Buffer.from(toBinary(RateLimitQuotaUsageReportsSchema, report))
const decodeResponse = (bytes: Buffer): RateLimitQuotaResponse => fromBinary(RateLimitQuotaResponseSchema, bytes)
