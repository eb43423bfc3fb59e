import { describe, expect, test } from '@jest/globals'
import { HeaderList } from './headers.ts'
import { trailersAfter } from './trailers.ts'

describe('trailers after a head', () => {
  const head = (): HeaderList => {
    const headers = new HeaderList(['x-secret', '1', 'x-kept', '1'])
    headers.remove('x-secret')
    headers.set('x-user', 'alice')
    headers.set('grpc-status', '0')
    return headers
  }

  test.each([
    'authorization',
    'Proxy-Authorization',
    'cookie',
    'set-cookie',
    'host',
    'content-length',
    'content_length',
    'transfer-encoding',
    'transfer_encoding',
    'connection',
    'te',
    'upgrade',
    'x-user',
    'x_user',
    'x-secret',
    'x_secret',
  ])('%s is left out', (name) => {
    expect(trailersAfter(head(), new HeaderList([name.toLowerCase(), 'evil']))).toBeUndefined()
  })

  test.each(['x-kept', 'x-checksum', 'grpc-status', 'grpc-message', 'grpc-status-details-bin', 'grpc_metadata'])('%s is sent', (name) => {
    expect(trailersAfter(head(), new HeaderList([name, '1']))?.raw).toEqual([name, '1'])
  })

  test('a field that a policy set in the trailers is sent', () => {
    const trailers = new HeaderList()
    trailers.set('x-user', 'bob')
    expect(trailersAfter(head(), trailers)?.raw).toEqual(['x-user', 'bob'])
  })
})
