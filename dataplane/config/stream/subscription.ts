import { status } from '@grpc/grpc-js'
import { create } from '@bufbuild/protobuf'
import { parseWireName } from '#api/config/wire.ts'
import { ADDRESS_TYPE, RESOURCE_TYPE } from '#api/names.ts'
import type { DeltaDiscoveryRequest, DeltaDiscoveryResponse, Resource } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import { DeltaDiscoveryRequestSchema } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import { Slice } from '../../runtime/cooperative.ts'
import type { ConfigMessage, ConfigStore } from '../store.ts'
import { decodeResource, type CheckMessage, type RejectedResource } from './decode.ts'
import { toNode, type NodeIdentity } from './node.ts'

const TYPE_NAMES: Readonly<Record<string, string>> = { [RESOURCE_TYPE]: 'config stream: resources', [ADDRESS_TYPE]: 'config stream: addresses' }

/** Result of applying one response. `rejected` is empty for an ack. */
export interface AppliedResponse {
  readonly updated: number
  readonly removed: number
  readonly rejected: readonly RejectedResource[]
  /** The ack or nack to send. */
  readonly reply: DeltaDiscoveryRequest
}

interface DecodedResources {
  readonly upserts: readonly ConfigMessage[]
  readonly accepted: readonly Resource[]
  readonly rejected: readonly RejectedResource[]
}

/**
 * Resources that this data plane holds from the config stream (delta xDS). Outlives connections: a new one starts with the
 * versions of those before it.
 */
export class StreamSubscription {
  readonly #store: ConfigStore
  readonly #check: CheckMessage | undefined
  /** Type URL -> name -> version in the store. */
  readonly #versions = new Map(Object.keys(TYPE_NAMES).map((typeUrl) => [typeUrl, new Map<string, string>()]))

  constructor(store: ConfigStore, check: CheckMessage | undefined) {
    this.#store = store
    this.#check = check
    for (const name of Object.values(TYPE_NAMES)) store.expect(name)
  }

  /** First requests of a connection, one per type, with the versions held. Only the first one names the node. */
  initialRequests(node: NodeIdentity): DeltaDiscoveryRequest[] {
    return [...this.#versions].map(([typeUrl, versions], index) =>
      create(DeltaDiscoveryRequestSchema, {
        ...(index === 0 ? { node: toNode(node) } : {}),
        typeUrl,
        initialResourceVersions: Object.fromEntries(versions),
      }),
    )
  }

  /**
   * Applies the valid resources of a response, all at once. Decoding yields to traffic between slices. Returns undefined, and
   * applies nothing, if `isClosed` becomes true meanwhile: the next connection reports the versions held before.
   */
  async apply(response: DeltaDiscoveryResponse, isClosed: () => boolean): Promise<AppliedResponse | undefined> {
    const { typeUrl, resources, removedResources } = response
    const decoded = await this.#decode(resources, typeUrl, isClosed)
    if (decoded === undefined) return undefined
    const { upserts, accepted, rejected } = decoded
    const removals = removedResources.map(parseWireName).filter((id) => id !== undefined)
    const commit = await this.#store.prepare('stream', { upserts, removals })
    if (isClosed()) return undefined
    const versions = this.#versions.get(typeUrl)
    for (const { name, version } of accepted) versions?.set(name, version)
    for (const name of removedResources) versions?.delete(name)
    commit()
    // A response without a single valid resource does not complete the initial config.
    if (rejected.length === 0 || upserts.length > 0) this.#store.arrive(TYPE_NAMES[typeUrl] ?? typeUrl)
    return { updated: upserts.length, removed: removals.length, rejected, reply: toReply(response, rejected) }
  }

  async #decode(resources: readonly Resource[], typeUrl: string, isClosed: () => boolean): Promise<DecodedResources | undefined> {
    const upserts: ConfigMessage[] = []
    const accepted: Resource[] = []
    const rejected: RejectedResource[] = []
    const slice = new Slice()
    for (const resource of resources) {
      if (slice.isOver) {
        await slice.next()
        if (isClosed()) return undefined
      }
      const decoded = decodeResource(resource, typeUrl, this.#check)
      if ('rejected' in decoded) rejected.push(decoded.rejected)
      else {
        upserts.push(decoded.message)
        accepted.push(resource)
      }
    }
    return { upserts, accepted, rejected }
  }
}

function toReply({ typeUrl, nonce }: DeltaDiscoveryResponse, rejected: readonly RejectedResource[]): DeltaDiscoveryRequest {
  return create(DeltaDiscoveryRequestSchema, {
    typeUrl,
    responseNonce: nonce,
    ...(rejected.length > 0 ? { errorDetail: { code: status.INVALID_ARGUMENT, message: JSON.stringify(rejected) } } : {}),
  })
}
