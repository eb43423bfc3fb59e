import { readFile } from 'node:fs/promises'
import { setTimeout as waitMs } from 'node:timers/promises'
import { Metadata, status, type ClientDuplexStream, type ServiceError } from '@grpc/grpc-js'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { DeltaDiscoveryRequest, DeltaDiscoveryResponse } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import { DeltaDiscoveryRequestSchema, DeltaDiscoveryResponseSchema } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import { RESOURCE_TYPE } from '#api/names.ts'
import type { RolloutSample } from '#api/rollout/samples.ts'
import type { ConfigStore } from '../store.ts'
import { backoffMs } from './backoff.ts'
import type { CheckMessage, RejectedResource } from './decode.ts'
import type { NodeIdentity } from './node.ts'
import { createClient, parseServerAddress, type ServerAddress } from './server.ts'
import { StreamSubscription } from './subscription.ts'

export type ConfigStreamEvent =
  | { readonly type: 'connected' }
  /** `cause` is one line. The last valid config stays in force. */
  | { readonly type: 'disconnected'; readonly cause: string; readonly retryMs: number }
  | { readonly type: 'applied'; readonly updated: number; readonly removed: number }
  | { readonly type: 'nacked'; readonly resources: readonly RejectedResource[] }

export interface ConfigStreamOptions {
  /** XDS_ADDRESS: `http://host:port` or `https://host:port`. */
  readonly address: string
  readonly node: NodeIdentity
  readonly store: ConfigStore
  /** File with the bearer token; read for every connection, because it is rotated. */
  readonly tokenFile?: string
  /** PEM trust anchors for `https`; read for every connection. Default: those of the system. */
  readonly rootCaFile?: string
  /** Additional check of each message that fits the schema. */
  readonly check?: CheckMessage
  readonly onEvent?: (event: ConfigStreamEvent) => void
  /** Returns [0, 1); jitter of the backoff. Default: Math.random. */
  readonly random?: () => number
  /** Waits between connection attempts. Default: a timer. */
  readonly wait?: (delayMs: number, signal: AbortSignal) => Promise<unknown>
}

type Call = ClientDuplexStream<DeltaDiscoveryRequest, DeltaDiscoveryResponse>

/** A plugin that this data plane cannot load. */
export interface RefusedPlugin {
  /** `<namespace>/<policy>/<plugin>`. */
  readonly plugin: string
  readonly problem: string
}

/** What only a data plane can find. */
interface DataplaneReport {
  /** Plugins that it cannot load. */
  readonly plugins: readonly RefusedPlugin[]
  /** MCP targets whose tools are held: `<namespace>/<backend>/<target>`. */
  readonly heldTools: readonly string[]
  /** What it measured in the steps of rollouts that the operator decides. */
  readonly rollouts: readonly RolloutSample[]
}

const NOTHING_FOUND: DataplaneReport = { plugins: [], heldTools: [], rollouts: [] }
/** The operator reads no more of each list. */
const MAX_ITEMS = 64
const MAX_PROBLEM_LENGTH = 1000

const describe = ({ plugins, heldTools, rollouts }: DataplaneReport): string =>
  JSON.stringify({
    plugins: plugins.slice(0, MAX_ITEMS).map(({ plugin, problem }) => ({ plugin, problem: problem.slice(0, MAX_PROBLEM_LENGTH) })),
    // Without an order of its own, the same targets would be sent again.
    heldTools: heldTools.toSorted().slice(0, MAX_ITEMS),
    rollouts: rollouts.slice(0, MAX_ITEMS),
  })

const NOTHING_REPORTED = describe(NOTHING_FOUND)

const PATH = '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources'
/** Time until the server must have accepted the stream. */
const CONNECT_TIMEOUT_MS = 20_000

/**
 * Follows the operator's config stream (delta xDS) into the store until `close`. Reconnects with backoff, reports to the server
 * which versions it holds, and keeps the last valid config while disconnected.
 * @throws Error if the address is not usable; the message names it
 */
export function startConfigStream(options: ConfigStreamOptions): ConfigStream {
  return new ConfigStream(options)
}

/** A running config stream; see `startConfigStream`. */
export class ConfigStream {
  readonly #options: ConfigStreamOptions
  readonly #server: ServerAddress
  readonly #subscription: StreamSubscription
  readonly #abort = new AbortController()
  readonly #running: Promise<void>
  /** Connection attempts since the last applied response. */
  #attempt = 0
  #isConnected = false
  #call: Call | undefined
  #found = NOTHING_FOUND
  /** What the operator of this connection knows of `#found`. */
  #reported = NOTHING_REPORTED

  constructor(options: ConfigStreamOptions) {
    this.#options = options
    this.#server = parseServerAddress(options.address)
    this.#subscription = new StreamSubscription(options.store, options.check)
    this.#running = this.#run()
  }

  isConnected(): boolean {
    return this.#isConnected
  }

  /** Reports findings to the operator: now if it does not know them, and on every new connection. */
  reportFindings(found: DataplaneReport): void {
    this.#found = found
    this.#sendFindings()
  }

  #sendFindings(): void {
    const message = describe(this.#found)
    if (!this.#isConnected || this.#call === undefined || message === this.#reported) return
    this.#reported = message
    // Without a nonce it concerns no response (operator.md §6.4).
    this.#call.write(create(DeltaDiscoveryRequestSchema, { typeUrl: RESOURCE_TYPE, errorDetail: { code: status.FAILED_PRECONDITION, message } }))
  }

  async close(): Promise<void> {
    this.#abort.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { random = Math.random, wait = (delayMs, signal) => waitMs(delayMs, undefined, { signal }) } = this.#options
    const { signal } = this.#abort
    while (!signal.aborted) {
      const cause = await this.#connect().catch((error: unknown) => (error instanceof Error ? error.message : String(error)))
      this.#isConnected = false
      if (signal.aborted) return
      const retryMs = backoffMs(this.#attempt++, random)
      this.#report({ type: 'disconnected', cause, retryMs })
      await wait(retryMs, signal).catch(() => undefined)
    }
  }

  /** Runs one connection until it ends; returns the cause. */
  async #connect(): Promise<string> {
    const { tokenFile, rootCaFile } = this.#options
    const metadata = new Metadata()
    if (tokenFile !== undefined) metadata.set('authorization', `Bearer ${(await readFile(tokenFile, 'utf8')).trim()}`)
    const client = await createClient(this.#server, rootCaFile)
    try {
      if (this.#abort.signal.aborted) return 'closed'
      return await this.#follow(client.makeBidiStreamRequest(PATH, encodeRequest, decodeResponse, metadata))
    } finally {
      client.close()
    }
  }

  /** Exchanges requests and responses until the stream ends; returns the cause. */
  #follow(call: Call): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const { signal } = this.#abort
    let isClosed = false
    const cancel = (): void => call.cancel()
    const end = (cause: string): void => {
      isClosed = true
      this.#call = undefined
      clearTimeout(timer)
      signal.removeEventListener('abort', cancel)
      resolve(cause)
    }
    const timer = setTimeout(() => {
      end(`no answer within ${CONNECT_TIMEOUT_MS} ms`)
      cancel()
    }, CONNECT_TIMEOUT_MS)
    signal.addEventListener('abort', cancel)
    call.on('metadata', () => {
      clearTimeout(timer)
      this.#isConnected = true
      this.#report({ type: 'connected' })
      this.#call = call
      this.#reported = NOTHING_REPORTED
      this.#sendFindings()
    })
    call.on('data', (response: DeltaDiscoveryResponse) => {
      this.#handle(call, response, () => isClosed).catch((error: unknown) => {
        reject(error instanceof Error ? error : new Error(String(error)))
        cancel()
      })
    })
    call.on('error', (error: ServiceError) => end(`${status[error.code] ?? error.code}: ${error.details}`))
    call.on('end', () => end('the server ended the stream'))
    for (const request of this.#subscription.initialRequests(this.#options.node)) call.write(request)
    return promise
  }

  /** Applies one response and acknowledges it. The stream is paused meanwhile, so that responses apply in order. */
  async #handle(call: Call, response: DeltaDiscoveryResponse, isClosed: () => boolean): Promise<void> {
    call.pause()
    const applied = await this.#subscription.apply(response, isClosed)
    if (applied === undefined) return
    this.#report({ type: 'applied', updated: applied.updated, removed: applied.removed })
    if (applied.rejected.length > 0) this.#report({ type: 'nacked', resources: applied.rejected })
    if (isClosed()) return
    this.#attempt = 0
    call.write(applied.reply)
    call.resume()
  }

  #report(event: ConfigStreamEvent): void {
    this.#options.onEvent?.(event)
  }
}

const encodeRequest = (request: DeltaDiscoveryRequest): Buffer => Buffer.from(toBinary(DeltaDiscoveryRequestSchema, request))
const decodeResponse = (bytes: Buffer): DeltaDiscoveryResponse => fromBinary(DeltaDiscoveryResponseSchema, bytes)
