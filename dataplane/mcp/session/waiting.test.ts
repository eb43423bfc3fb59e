import { describe, expect, test } from '@jest/globals'
import { WaitingCalls } from './waiting.ts'

const keys = [Buffer.alloc(32, 1)]
const key = { place: 'place', principal: undefined }
const call = { expire: () => undefined }
const lost = (peer: object | undefined) => ({ kind: 'lost', id: expect.stringMatching(/^[0-9a-f-]{36}$/), peer })

describe('a requestState', () => {
  test.each([
    ['IPv4', { host: '10.0.0.1', port: 15_023 }],
    ['IPv6', { host: '2001:db8:1111:2222:3333:4444:255.255.255.255', port: 65_535 }],
  ])('has the %s address of the replica that has the call', (_, address) => {
    const state = new WaitingCalls({ keys, peers: { address } }).add(call, key, 'client') ?? ''
    expect(new WaitingCalls({ keys }).take(state, key)).toEqual(lost(address))
  })

  test('has no address if the replica takes no messages', () => {
    const state = new WaitingCalls({ keys, peers: { address: undefined } }).add(call, key, 'client') ?? ''
    expect(new WaitingCalls({ keys }).take(state, key)).toEqual(lost(undefined))
  })
})
