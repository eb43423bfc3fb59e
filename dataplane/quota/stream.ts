import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { setTimeout as waitMs } from 'node:timers/promises'
import { Metadata, status, type ClientDuplexStream, type ServiceError } from '@grpc/grpc-js'
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import type { RateLimitQuotaResponse, RateLimitQuotaUsageReports } from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import { RateLimitQuotaResponseSchema, RateLimitQuotaUsageReportsSchema } from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import { roleOf, type NodeIdentity } from '../config/stream/node.ts'
import { createClient, parseServerAddress } from '../config/stream/server.ts'
import { backoffDelay, withJitter } from '../runtime/backoff.ts'
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
  onConnected(): void
  onDisconnected(cause: string): void
}

type Call = ClientDuplexStream<RateLimitQuotaUsageReports, RateLimitQuotaResponse>

const PATH = '/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas'
/** Milliseconds between reports if nothing is urgent. */
const REPORT_MS = 200
/** Milliseconds between reports while requests wait for units that others have. */
const HUNGRY_MS = 50
/** A server that does not respond for so long is given up. */
const RESPONSE_MS = 3_000
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
    const { keeper, node, onConnected } = this.#options
    const { promise, resolve } = Promise.withResolvers<string>()
    const { signal } = this.#abort
    const role = roleOf(node)
    let timer: NodeJS.Timeout | undefined
    let isConnected = false
    let sentMs = performance.now()
    const end = (cause: string): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', finish)
      resolve(cause)
    }
    const report = (isEmpty = false): void => {
      clearTimeout(timer)
      this.#sendNow = undefined
      const nowMs = performance.now()
      call.write(toReport(role, this.#replica, isEmpty ? [] : keeper.takeReport(), nowMs - sentMs))
      sentMs = nowMs
      timer = setTimeout(() => {
        end(`no response within ${RESPONSE_MS} ms`)
        call.cancel()
      }, RESPONSE_MS)
    }
    // What was used last is reported before the end.
    const finish = (): void => {
      clearTimeout(timer)
      this.#sendNow = undefined
      if (isConnected) call.write(toReport(role, this.#replica, keeper.takeReport(), performance.now() - sentMs))
      call.end()
      timer = setTimeout(() => call.cancel(), 200)
    }
    signal.addEventListener('abort', finish)
    call.on('data', (response: RateLimitQuotaResponse) => {
      clearTimeout(timer)
      this.#failures = 0
      if (!isConnected) {
        isConnected = true
        keeper.connected()
        onConnected()
      }
      keeper.apply(readResponse(response))
      if (signal.aborted) return
      keeper.endWaits()
      if (keeper.isUrgent) return report()
      timer = setTimeout(report, keeper.isHungry ? HUNGRY_MS : REPORT_MS)
      this.#sendNow = report
    })
    call.on('error', (error: ServiceError) => end(`${status[error.code] ?? error.code}: ${error.details}`))
    call.on('end', () => end('the server ended the stream'))
    // Nothing is given back before a server has accepted the stream.
    report(true)
    return promise
  }
}

const encodeReport = (report: RateLimitQuotaUsageReports): Buffer => Buffer.from(toBinary(RateLimitQuotaUsageReportsSchema, report))
const decodeResponse = (bytes: Buffer): RateLimitQuotaResponse => fromBinary(RateLimitQuotaResponseSchema, bytes)
