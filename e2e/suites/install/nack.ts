import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Client, credentials, Metadata } from '@grpc/grpc-js'
import { RESOURCE_TYPE } from '#api/names.ts'
import { DeltaDiscoveryRequestSchema, DeltaDiscoveryResponseSchema } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'
import type { DeltaDiscoveryRequest, DeltaDiscoveryResponse } from '#gen/proto/envoy/service/discovery/v3/discovery_pb.js'

const METHOD = '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources'

/**
 * Opens a config stream like a data plane and rejects the first response with a NACK. `role` is `<namespace>~<gateway>`. Returns the resource names of that
 * response, or rejects with the error of the stream.
 */
export async function rejectConfig(address: string, token: string, role: string): Promise<readonly string[]> {
  const client = new Client(address, credentials.createInsecure())
  const headers = new Metadata()
  headers.set('authorization', `Bearer ${token}`)
  const stream = client.makeBidiStreamRequest(
    METHOD,
    (request: DeltaDiscoveryRequest) => Buffer.from(toBinary(DeltaDiscoveryRequestSchema, request)),
    (bytes: Buffer) => fromBinary(DeltaDiscoveryResponseSchema, bytes),
    headers,
  )
  const send = (fields: object): void => void stream.write(create(DeltaDiscoveryRequestSchema, { typeUrl: RESOURCE_TYPE, ...fields }))
  try {
    return await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('no response within 60 s')), 60_000)
      stream.on('error', reject)
      stream.on('data', ({ nonce, resources }: DeltaDiscoveryResponse) => {
        send({ responseNonce: nonce, errorDetail: { code: 3, message: 'rejected by a test' } })
        // The NACK must be sent before the stream is cancelled.
        setTimeout(() => {
          clearTimeout(timer)
          resolve(resources.map(({ name }) => name))
        }, 500)
      })
      send({ node: { id: 'test', metadata: { role } } })
    })
  } finally {
    stream.on('error', () => {})
    stream.cancel()
    client.close()
  }
}
