import { describe, expect, test } from '@jest/globals'
import { unseal } from '../../../runtime/seal.ts'
import { WaitingCalls } from './waiting.ts'

const keys = [Buffer.alloc(32, 1)]
const key = { place: 'place', principal: undefined, credentials: 'own' }
const call = { expire: () => undefined }
const lost = (peer: object | undefined) => ({ kind: 'lost', id: expect.stringMatching(/^[0-9a-f-]{36}$/), peer })

describe('a requestState', () => {
  test('continues a call with its credentials only; those of a retry that a replica of the version before sent are not known', () => {
    const waiting = new WaitingCalls({ keys })
    const state = waiting.add(call, key, 'client') ?? ''
    const id = unseal(keys, 'requestState', state)?.toString() ?? ''
    expect(waiting.take(state, { ...key, credentials: 'other' })).toEqual({ kind: 'invalid' })
    expect(waiting.takeById(id, { ...key, credentials: 'other' })).toEqual({ kind: 'invalid' })
    expect(waiting.takeById(id, { ...key, credentials: undefined })).toEqual({ kind: 'found', call })
  })

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
