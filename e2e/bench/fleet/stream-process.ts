import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Client, credentials, Metadata, type ClientDuplexStream } from '@grpc/grpc-js'
import { ADDRESS_TYPE, RESOURCE_TYPE } from '#api/names.ts'
import type { DeltaDiscoveryRequest, DeltaDiscoveryResponse } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import { DeltaDiscoveryRequestSchema, DeltaDiscoveryResponseSchema } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'

/** A simulated data plane: which config it asks for, and the token that permits it. */
export interface SimulatedDataplane {
  readonly role: string
  readonly token: string
}

/** Message to this process: opens the streams of these data planes. */
export interface OpenRequest {
  readonly address: string
  readonly dataplanes: readonly SimulatedDataplane[]
}

/** Message from this process. Times are milliseconds since the epoch. */
export type StreamReport =
  /** A stream has its first config, complete. `resources` is the number of its resources. */
  | { readonly type: 'served'; readonly at: number; readonly resources: number }
  /** A response contained the text `marker-<number>`. */
  | { readonly type: 'seen'; readonly marker: number; readonly at: number }
  | { readonly type: 'ended'; readonly cause: string }

const PATH = '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources'
const TYPES = [RESOURCE_TYPE, ADDRESS_TYPE]
const RETRY_MS = 500
const MARKER = Buffer.from('marker-')

const report = (message: StreamReport): void => void process.send?.(message)
const now = (): number => performance.timeOrigin + performance.now()

/** Follows the config of one data plane until the process ends, on a connection of its own. */
function follow(address: string, { role, token }: SimulatedDataplane): void {
  const client = new Client(address, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1, 'grpc.max_receive_message_length': -1 })
  const metadata = new Metadata()
  metadata.set('authorization', `Bearer ${token}`)
  const call: ClientDuplexStream<DeltaDiscoveryRequest, DeltaDiscoveryResponse> = client.makeBidiStreamRequest(
    PATH,
    (request: DeltaDiscoveryRequest) => Buffer.from(toBinary(DeltaDiscoveryRequestSchema, request)),
    (bytes: Buffer) => fromBinary(DeltaDiscoveryResponseSchema, bytes),
    metadata,
  )
  const answered = new Set<string>()
  let resources = 0
  call.on('data', (response: DeltaDiscoveryResponse) => {
    const { typeUrl, nonce } = response
    const at = now()
    resources += response.resources.length
    if (!answered.has(typeUrl)) {
      answered.add(typeUrl)
      if (answered.size === TYPES.length) report({ type: 'served', at, resources })
    } else for (const marker of findMarkers(response)) report({ type: 'seen', marker, at })
    call.write(create(DeltaDiscoveryRequestSchema, { typeUrl, responseNonce: nonce }))
  })
  let isOver = false
  const end = (cause: string): void => {
    if (isOver) return
    isOver = true
    client.close()
    report({ type: 'ended', cause })
    setTimeout(() => follow(address, { role, token }), RETRY_MS)
  }
  call.on('error', (error) => end(error.message))
  call.on('end', () => end('the server ended the stream'))
  const node = { id: `proxy~127.0.0.1~simulated.${role}`, metadata: { role } }
  for (const typeUrl of TYPES) call.write(create(DeltaDiscoveryRequestSchema, { typeUrl, node }))
}

/** The numbers after `marker-` in the resources of a response. */
function findMarkers({ resources }: DeltaDiscoveryResponse): Set<number> {
  const found = new Set<number>()
  for (const { resource } of resources) {
    if (resource === undefined) continue
    const bytes = Buffer.from(resource.value.buffer, resource.value.byteOffset, resource.value.byteLength)
    const index = bytes.indexOf(MARKER)
    if (index >= 0) found.add(Number.parseInt(bytes.toString('latin1', index + MARKER.length, index + MARKER.length + 9), 10))
  }
  return found
}

process.on('message', ({ address, dataplanes }: OpenRequest) => {
  for (const dataplane of dataplanes) follow(address, dataplane)
})
