import { create } from '@bufbuild/protobuf'
import { Client, credentials } from '@grpc/grpc-js'
import { Authorization, CheckRequestSchema } from '#gen/proto/envoy/service/auth/v3/external_auth_pb.js'
import { definitionOf } from '../harness/example/services.ts'

/** Calls the service on the given port once per message of the parent process, with grpc-js, and returns the duration in microseconds. */
const client = new Client(`127.0.0.1:${process.argv[2]}`, credentials.createInsecure())
const { path, requestSerialize, responseDeserialize } = definitionOf(Authorization.method.check)
const headers = { 'x-user': 'anna', ':method': 'GET', ':path': '/auth/x' }
const question = create(CheckRequestSchema, { attributes: { request: { http: { method: 'GET', path: '/auth/x', host: 'bench.test', headers } } } })

process.on('message', () => {
  const startedAt = performance.now()
  client.makeUnaryRequest(path, requestSerialize, responseDeserialize, question, (error) => {
    if (error !== null) throw error
    process.send?.((performance.now() - startedAt) * 1000)
  })
})
