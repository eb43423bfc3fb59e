import { describe, expect, test } from '@jest/globals'
import type { Endpoint, Service } from '#gen/config/types.ts'
import { Balancer } from './balancer.ts'
import { findZone, placeEndpoints, type Place } from './locality.ts'

/** Address, node and zone of each endpoint. */
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

/** Endpoints that receive requests, in order of name. */
function chosen(balancer: Balancer): string[] {
  return [...new Set(Array.from({ length: 200 }, () => balancer.pick()?.address ?? 'nobody'))].toSorted()
}

describe('distance of endpoints', () => {
  const all = ['far', 'own-node', 'own-zone', 'somewhere']
  test.each<[string, Wish, Place, string[]]>([
    ['without a preference all endpoints are equal', {}, home, all],
    ['PreferSameZone stays in the zone', { trafficDistribution: 'PreferSameZone' }, home, ['own-node', 'own-zone']],
    ['PreferClose is PreferSameZone', { trafficDistribution: 'PreferClose' }, home, ['own-node', 'own-zone']],
    ['PreferSameNode stays on the node', { trafficDistribution: 'PreferSameNode' }, home, ['own-node']],
    [
      'PreferSameNode uses the zone if the node has no endpoint',
      { trafficDistribution: 'PreferSameNode' },
      { node: 'n9', zone: 'a' },
      ['own-node', 'own-zone'],
    ],
    ['PreferSameZone uses all endpoints if the zone has none', { trafficDistribution: 'PreferSameZone' }, { node: 'n9', zone: 'c' }, all],
    ['an unknown location uses all endpoints', { trafficDistribution: 'PreferSameNode' }, { node: undefined, zone: undefined }, all],
    ['Local never leaves the node', { internalTrafficPolicy: 'Local' }, home, ['own-node']],
    ['Local has no endpoint on a node without endpoints', { internalTrafficPolicy: 'Local' }, { node: 'n9', zone: 'a' }, ['nobody']],
  ])('%s', (_, wish, own, expected) => expect(chosen(balancerFor(wish, own))).toEqual(expected))

  test('the next distance is used while the nearest endpoints are evicted', () => {
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

  test('the zone of a node is that of the endpoints on it', () => {
    const service: Service = { key: 'ns/s', ports: [{ port: 80, endpoints }] }
    expect([findZone([service], 'n2'), findZone([service], 'n9')]).toEqual(['a', undefined])
  })
})
