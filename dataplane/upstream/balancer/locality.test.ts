import { describe, expect, test } from '@jest/globals'
import type { Endpoint, Service } from '#gen/config/types.ts'
import { Balancer } from './balancer.ts'
import { findZone, placeEndpoints, type Place } from './locality.ts'

/** Address, node and zone of each. */
const endpoints: Endpoint[] = [
  ['own-node', 'n1', 'a'],
  ['own-zone', 'n2', 'a'],
  ['far', 'n3', 'b'],
  ['somewhere', undefined, undefined],
].map(([address = '', node, zone]) => ({ address, port: 1, ...(node && { node }), ...(zone && { zone }) }))

type Wish = Pick<Service, 'trafficDistribution' | 'internalTrafficPolicy'>
const home: Place = { node: 'n1', zone: 'a' }

function balancerFor(wish: Wish, own: Place): Balancer {
  const balancer = new Balancer()
  balancer.update(placeEndpoints(endpoints, wish, own))
  return balancer
}

/** Who gets requests, in order of name. */
function chosen(balancer: Balancer): string[] {
  return [...new Set(Array.from({ length: 200 }, () => balancer.pick()?.address ?? 'nobody'))].toSorted()
}

describe('endpoints near and far', () => {
  const all = ['far', 'own-node', 'own-zone', 'somewhere']
  test.each<[string, Wish, Place, string[]]>([
    ['without a wish all are as good', {}, home, all],
    ['PreferSameZone stays in the zone', { trafficDistribution: 'PreferSameZone' }, home, ['own-node', 'own-zone']],
    ['PreferClose is PreferSameZone', { trafficDistribution: 'PreferClose' }, home, ['own-node', 'own-zone']],
    ['PreferSameNode stays on the node', { trafficDistribution: 'PreferSameNode' }, home, ['own-node']],
    ['PreferSameNode goes to the zone where the node has none', { trafficDistribution: 'PreferSameNode' }, { node: 'n9', zone: 'a' }, ['own-node', 'own-zone']],
    ['a zone without endpoints goes everywhere', { trafficDistribution: 'PreferSameZone' }, { node: 'n9', zone: 'c' }, all],
    ['who does not know its place goes everywhere', { trafficDistribution: 'PreferSameNode' }, { node: undefined, zone: undefined }, all],
    ['Local never leaves the node', { internalTrafficPolicy: 'Local' }, home, ['own-node']],
    ['Local has nobody on a node without endpoints', { internalTrafficPolicy: 'Local' }, { node: 'n9', zone: 'a' }, ['nobody']],
  ])('%s', (_, wish, own, expected) => expect(chosen(balancerFor(wish, own))).toEqual(expected))

  test('the next bucket serves while the nearest is evicted', () => {
    const balancer = balancerFor({ trafficDistribution: 'PreferSameNode' }, home)
    const eviction = { durationMs: 1e9, restoreHealth: undefined, consecutiveFailures: undefined, healthThreshold: undefined }
    const evict = (address: string): void => {
      const endpoint = balancer.find(`${address}:1`)
      if (endpoint !== undefined) balancer.record(endpoint, false, 0, eviction)
    }
    evict('own-node')
    expect(chosen(balancer)).toEqual(['own-zone'])
    evict('own-zone')
    expect(chosen(balancer)).toEqual(['far', 'somewhere'])
    balancer.restoreAll()
    expect(chosen(balancer)).toEqual(['own-node'])
  })

  test('the zone of a node is that of its pods', () => {
    const service: Service = { key: 'ns/s', ports: [{ port: 80, endpoints }] }
    expect([findZone([service], 'n2'), findZone([service], 'n9')]).toEqual(['a', undefined])
  })
})
