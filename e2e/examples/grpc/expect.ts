import { status } from '@grpc/grpc-js'
import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'
import { makeGrpcClient } from '../../harness/grpc-client.ts'

export default expectations({
  'unary, server-streaming and bidirectional calls of grpc-js succeed': async (run) => {
    const client = makeGrpcClient(`127.0.0.1:${run.port(8080)}`)
    try {
      expect(await client.unary('hello')).toMatchObject({ message: 'hello', server: 'echo-v1' })
      expect(await client.unary('hello', { 'x-version': 'v2' })).toMatchObject({ server: 'echo-v2' })
      const { messages, trailers } = await client.repeat('again', 5)
      expect([messages.length, trailers?.get('x-trailer')]).toEqual([5, ['end']])
      expect(await client.chat(['one', 'two', 'three'])).toEqual(['one', 'two', 'three'])
    } finally {
      client.close()
    }
  },
  "the upstream's status and message arrive": async (run) => {
    const client = makeGrpcClient(`127.0.0.1:${run.port(8080)}`)
    try {
      const call = client.unary('x', { 'x-grpc-status': '9', 'x-grpc-message': 'not now' })
      await expect(call).rejects.toMatchObject({ code: status.FAILED_PRECONDITION, details: 'not now' })
    } finally {
      client.close()
    }
  },
  'a call to a service without a route gets the status UNIMPLEMENTED': async (run) => {
    const client = makeGrpcClient(`127.0.0.1:${run.port(8080)}`, { service: 'other.Service' })
    try {
      await expect(client.unary('x')).rejects.toMatchObject({ code: status.UNIMPLEMENTED, details: 'route not found' })
    } finally {
      client.close()
    }
  },
})
