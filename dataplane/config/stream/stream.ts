import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { setTimeout as waitMs } from 'node:timers/promises'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import { Client, credentials, Metadata, status, type ChannelCredentials, type ClientDuplexStream, type ServiceError } from '@grpc/grpc-js'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { parseWireName } from '#api/config/wire.ts'
import { ADDRESS_TYPE, RESOURCE_TYPE, XDS_PORT } from '#api/names.ts'
import type { DeltaDiscoveryRequest, DeltaDiscoveryResponse } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import { DeltaDiscoveryRequestSchema, DeltaDiscoveryResponseSchema } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import { withoutBrackets } from '../../http/message.ts'
import { Slice } from '../../runtime/cooperative.ts'
import type { ConfigMessage, ConfigStore } from '../store.ts'
import { backoffMs } from './backoff.ts'
import { decodeResource, type CheckMessage, type RefusedResource } from './decode.ts'
import { toNode, type NodeIdentity } from './node.ts'

export type ConfigStreamEvent =
  | { readonly type: 'connected' }
  /** `cause` is one line; the last good config stays. */
  | { readonly type: 'disconnected'; readonly cause: string; readonly retryMs: number }
  | { readonly type: 'applied'; readonly updated: number; readonly removed: number }
  | { readonly type: 'nacked'; readonly resources: readonly RefusedResource[] }

export interface ConfigStreamOptions {
  /** XDS_ADDRESS: `http://host:port` or `https://host:port`. */
  readonly address: string
  readonly node: NodeIdentity
  readonly store: ConfigStore
  /** File with the bearer token; read for every connection, because it is rotated. */
  readonly tokenFile?: string
  /** PEM trust anchors for `https`; read for every connection. Default: those of the system. */
  readonly rootCaFile?: string
  /** Further check of each message that fits the schema. */
  readonly check?: CheckMessage
  readonly onEvent?: (event: ConfigStreamEvent) => void
  /** Gives [0, 1); jitter of the backoff. */
  readonly random?: () => number
  readonly wait?: (delayMs: number, signal: AbortSignal) => Promise<unknown>
}

export interface ConfigStream {
  isConnected(): boolean
  close(): Promise<void>
}

const TYPE_NAMES: Readonly<Record<string, string>> = { [RESOURCE_TYPE]: 'config stream: resources', [ADDRESS_TYPE]: 'config stream: addresses' }
const PATH = '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources'
const MAX_MESSAGE_BYTES = 200 * 1024 * 1024
/** How long a connection may take until the server has accepted the stream. */
const CONNECT_TIMEOUT_MS = 20_000

/**
 * Follows the operator's config stream (delta xDS) into the store, for as long as the process lives: it reconnects with
 * backoff, tells the server which versions it holds, and keeps the last good config meanwhile.
 * @throws when the address is not usable, naming it
 */
export function startConfigStream(options: ConfigStreamOptions): ConfigStream {
  const target = parseAddress(options.address)
  const { store, random = Math.random, wait = (delayMs, signal) => waitMs(delayMs, undefined, { signal }) } = options
  const abort = new AbortController()
  /** Type URL -> name -> version that the store holds. */
  const held = new Map(Object.keys(TYPE_NAMES).map((typeUrl) => [typeUrl, new Map<string, string>()]))
  let isConnected = false
  let attempt = 0
  for (const name of Object.values(TYPE_NAMES)) store.expect(name)
  const report = (event: ConfigStreamEvent): void => options.onEvent?.(event)

  async function run(): Promise<void> {
    while (!abort.signal.aborted) {
      const cause = await connect().catch((error: unknown) => (error instanceof Error ? error.message : String(error)))
      isConnected = false
      if (abort.signal.aborted) return
      const retryMs = backoffMs(attempt++, random)
      report({ type: 'disconnected', cause, retryMs })
      await wait(retryMs, abort.signal).catch(() => undefined)
    }
  }

  /** One connection, until it ends; gives the cause. */
  async function connect(): Promise<string> {
    const metadata = new Metadata()
    const token = options.tokenFile === undefined ? undefined : (await readFile(options.tokenFile, 'utf8')).trim()
    if (token !== undefined) metadata.set('authorization', `Bearer ${token}`)
    const client = new Client(target.authority, await loadCredentials(target, options.rootCaFile), {
      'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
      'grpc.max_send_message_length': -1,
      'grpc.keepalive_time_ms': 30_000,
      'grpc.keepalive_timeout_ms': 10_000,
      // Backoff is ours: each attempt has a connection of its own, and never waits for the one that gRPC would share.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_retries': 0,
      // The stream stays inside the cluster, whatever HTTP_PROXY says of traffic that leaves it.
      'grpc.enable_http_proxy': 0,
      'grpc.service_config_disable_resolution': 1,
      // RFC 6066 §3: SNI is never an IP address, which gRPC would send. The certificate is checked against the address.
      ...(isIP(target.host) > 0 ? { 'grpc.ssl_target_name_override': 'config-server' } : {}),
    })
    try {
      if (abort.signal.aborted) return 'closed'
      return await follow(client.makeBidiStreamRequest(PATH, encodeRequest, decodeResponse, metadata))
    } finally {
      client.close()
    }
  }

  function follow(call: ClientDuplexStream<DeltaDiscoveryRequest, DeltaDiscoveryResponse>): Promise<string> {
    return new Promise((resolve, reject) => {
      let isOver = false
      const cancel = (): void => call.cancel()
      const timer = setTimeout(() => {
        end(`no answer within ${CONNECT_TIMEOUT_MS} ms`)
        cancel()
      }, CONNECT_TIMEOUT_MS)
      const end = (cause: string): void => {
        isOver = true
        clearTimeout(timer)
        abort.signal.removeEventListener('abort', cancel)
        resolve(cause)
      }
      abort.signal.addEventListener('abort', cancel)
      call.on('metadata', () => {
        clearTimeout(timer)
        isConnected = true
        report({ type: 'connected' })
      })
      call.on('data', (response: DeltaDiscoveryResponse) => {
        call.pause()
        apply(response, () => isOver).then(
          (answer) => {
            if (isOver) return
            attempt = 0
            call.write(answer)
            call.resume()
          },
          (error: unknown) => {
            reject(error instanceof Error ? error : new Error(String(error)))
            cancel()
          },
        )
      })
      call.on('error', (error: ServiceError) => end(`${status[error.code] ?? error.code}: ${error.details}`))
      call.on('end', () => end('the server ended the stream'))
      for (const [index, [typeUrl, versions]] of [...held].entries())
        call.write(
          create(DeltaDiscoveryRequestSchema, {
            ...(index === 0 ? { node: toNode(options.node) } : {}),
            typeUrl,
            initialResourceVersions: Object.fromEntries(versions),
          }),
        )
    })
  }

  /**
   * Applies what is good of a response, all at once, and gives the ack or nack. Decoding gives way to traffic between
   * slices; a response whose stream ended meanwhile is dropped, because the next stream has already told what is held.
   */
  async function apply(response: DeltaDiscoveryResponse, isOver: () => boolean): Promise<DeltaDiscoveryRequest> {
    const { typeUrl, nonce, resources, removedResources } = response
    const answer = create(DeltaDiscoveryRequestSchema, { typeUrl, responseNonce: nonce })
    const versions = held.get(typeUrl)
    const refused: RefusedResource[] = []
    const upserts: ConfigMessage[] = []
    const accepted: [name: string, version: string][] = []
    const slice = new Slice()
    for (const resource of resources) {
      if (slice.isOver) {
        await slice.next()
        if (isOver()) return answer
      }
      const decoded = decodeResource(resource, typeUrl, options.check)
      if ('refused' in decoded) refused.push(decoded.refused)
      else {
        upserts.push(decoded.message)
        accepted.push([resource.name, resource.version])
      }
    }
    const removals = removedResources.map(parseWireName).filter((id) => id !== undefined)
    const applyAll = await store.prepare('stream', { upserts, removals })
    if (isOver()) return answer
    for (const [name, version] of accepted) versions?.set(name, version)
    for (const name of removedResources) versions?.delete(name)
    applyAll()
    // Of a response that is bad throughout nothing can be said to have arrived.
    if (refused.length === 0 || upserts.length > 0) store.arrive(TYPE_NAMES[typeUrl] ?? typeUrl)
    report({ type: 'applied', updated: upserts.length, removed: removals.length })
    if (refused.length === 0) return answer
    report({ type: 'nacked', resources: refused })
    return create(DeltaDiscoveryRequestSchema, {
      typeUrl,
      responseNonce: nonce,
      errorDetail: { code: status.INVALID_ARGUMENT, message: JSON.stringify(refused) },
    })
  }

  const running = run()
  return {
    isConnected: () => isConnected,
    async close() {
      abort.abort()
      await running
    },
  }
}

const encodeRequest = (request: DeltaDiscoveryRequest): Buffer => Buffer.from(toBinary(DeltaDiscoveryRequestSchema, request))
const decodeResponse = (bytes: Buffer): DeltaDiscoveryResponse => fromBinary(DeltaDiscoveryResponseSchema, bytes)

interface Target {
  readonly isTls: boolean
  /** Without brackets. */
  readonly host: string
  /** `host:port`. */
  readonly authority: string
}

async function loadCredentials({ isTls, host }: Target, rootCaFile: string | undefined): Promise<ChannelCredentials> {
  if (!isTls) return credentials.createInsecure()
  const rootCa = rootCaFile === undefined ? null : await readFile(rootCaFile)
  return credentials.createSsl(rootCa, null, null, { checkServerIdentity: (_, certificate) => checkOperatorIdentity(host, certificate) })
}

/** A certificate of the operator may leave out the cluster's domain: `proxy.proxy-system.svc` is the same Service. */
export function checkOperatorIdentity(host: string, certificate: PeerCertificate): Error | undefined {
  const [service] = /^[^.]+\.[^.]+\.svc(?=\.)/.exec(host) ?? []
  const mismatch = checkServerIdentity(host, certificate)
  return mismatch === undefined || (service !== undefined && checkServerIdentity(service, certificate) === undefined) ? undefined : mismatch
}

function parseAddress(address: string): Target {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '' || url.pathname !== '/')
    throw new Error(`XDS_ADDRESS: ${JSON.stringify(address)} is not usable; write http://host:port or https://host:port`)
  // The URL parser drops 80 and 443 even where they are written.
  const port = /:(\d+)\/?$/.exec(address)?.[1] ?? String(XDS_PORT)
  return { isTls: url.protocol === 'https:', host: withoutBrackets(url.hostname), authority: `${url.hostname}:${port}` }
}
