import { describe, expect, test } from '@jest/globals'
import { mergeStatus } from './merge.ts'

const NOW = '2026-06-01T00:00:00Z'
const OLD = '2026-01-01T00:00:00Z'
const own = (type: string, status: string, more: object = {}) => ({ type, status, reason: type, message: '', observedGeneration: 1, ...more })
const stored = (type: string, status: string, more: object = {}) => ({ ...own(type, status), lastTransitionTime: OLD, ...more })
const OURS = 'proxy.dev/proxy'
const parent = (name: string) => ({ group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'default', name })

describe('conditions', () => {
  test.each<[string, object | undefined, object[], object | undefined]>([
    ['none yet: written with the time', undefined, [own('Accepted', 'True')], { conditions: [own('Accepted', 'True', { lastTransitionTime: NOW })] }],
    ['the same: nothing to write', { conditions: [stored('Accepted', 'True')] }, [own('Accepted', 'True')], undefined],
    [
      'another status: another time',
      { conditions: [stored('Accepted', 'Unknown')] },
      [own('Accepted', 'True')],
      { conditions: [own('Accepted', 'True', { lastTransitionTime: NOW })] },
    ],
    [
      'another message or generation: the time stays',
      { conditions: [stored('Accepted', 'True')] },
      [own('Accepted', 'True', { message: 'm', observedGeneration: 2 })],
      { conditions: [stored('Accepted', 'True', { message: 'm', observedGeneration: 2 })] },
    ],
    [
      'those of others stay in place; ours that are not said any more go',
      { conditions: [stored('Ready', 'True'), stored('ResolvedRefs', 'False'), stored('Accepted', 'True')] },
      [own('Accepted', 'True')],
      { conditions: [stored('Ready', 'True'), stored('Accepted', 'True')] },
    ],
    [
      'the order does not matter',
      { conditions: [stored('Programmed', 'True'), stored('Accepted', 'True')] },
      [own('Accepted', 'True'), own('Programmed', 'True')],
      undefined,
    ],
  ])('%s', (_, live, conditions, expected) => {
    expect(mergeStatus(live, { conditions }, NOW)).toEqual(expected)
  })
})

describe('entries that controllers share', () => {
  const entry = (name: string, controllerName: string, conditions: object[]) => ({ parentRef: parent(name), controllerName, conditions })
  const foreign = entry('other', 'example.com/other', [stored('Accepted', 'True')])

  test('ours is added, the other controller keeps its own', () => {
    expect(mergeStatus({ parents: [foreign] }, { parents: [entry('gw', OURS, [own('Accepted', 'True')])] }, NOW)).toEqual({
      parents: [foreign, entry('gw', OURS, [own('Accepted', 'True', { lastTransitionTime: NOW })])],
    })
  })

  test('ours goes when we have nothing to say any more, only ours', () => {
    expect(mergeStatus({ parents: [entry('gw', OURS, [stored('Accepted', 'True')]), foreign] }, { parents: [] }, NOW)).toEqual({ parents: [foreign] })
  })

  test('nothing is written for an order, nor when others change what is theirs', () => {
    const live = { parents: [entry('gw', OURS, [stored('Accepted', 'True')]), foreign] }
    expect(mergeStatus(live, { parents: [entry('gw', OURS, [own('Accepted', 'True')])] }, NOW)).toBeUndefined()
  })

  test('the times of an entry are found by its parentRef, not by its place', () => {
    const live = { parents: [entry('a', OURS, [stored('Accepted', 'True')]), entry('b', OURS, [stored('Accepted', 'False')])] }
    expect(mergeStatus(live, { parents: [entry('b', OURS, [own('Accepted', 'False')])] }, NOW)).toEqual({
      parents: [entry('b', OURS, [stored('Accepted', 'False')])],
    })
  })

  test('a reference without kind or group is stored with what the CRD fills in: nothing to write', () => {
    const ours = { ancestorRef: { group: 'proxy.dev', name: 'StatusSummary' }, controllerName: OURS, conditions: [own('Attached', 'False')] }
    const filled = { group: 'proxy.dev', kind: 'Gateway', name: 'StatusSummary' }
    const live = { ancestors: [{ ...ours, ancestorRef: filled, conditions: [stored('Attached', 'False')] }] }
    expect(mergeStatus(live, { ancestors: [ours] }, NOW)).toBeUndefined()
    expect(mergeStatus(undefined, { ancestors: [ours] }, NOW)).toMatchObject({ ancestors: [{ ancestorRef: filled }] })
  })

  test('ancestors of policies are merged alike', () => {
    const ancestor = (name: string, controllerName: string, conditions: object[]) => ({ ancestorRef: parent(name), controllerName, conditions })
    const other = ancestor('x', 'example.com/other', [])
    expect(mergeStatus({ ancestors: [other, ancestor('old', OURS, [])] }, { ancestors: [ancestor('gw', OURS, [own('Accepted', 'True')])] }, NOW)).toEqual({
      ancestors: [other, ancestor('gw', OURS, [own('Accepted', 'True', { lastTransitionTime: NOW })])],
    })
  })
})

describe('fields of ours', () => {
  test('listeners are replaced, and keep the times of those of the same name', () => {
    const live = { listeners: [{ name: 'b', attachedRoutes: 0, conditions: [stored('Accepted', 'True')] }] }
    const ours = {
      listeners: [
        { name: 'a', attachedRoutes: 1, conditions: [own('Accepted', 'True')] },
        { name: 'b', attachedRoutes: 2, conditions: [own('Accepted', 'True')] },
      ],
    }
    expect(mergeStatus(live, ours, NOW)).toEqual({
      listeners: [
        { name: 'a', attachedRoutes: 1, conditions: [own('Accepted', 'True', { lastTransitionTime: NOW })] },
        { name: 'b', attachedRoutes: 2, conditions: [stored('Accepted', 'True')] },
      ],
    })
  })

  test('listeners that a refused ListenerSet does not have any more are taken back', () => {
    const live = { conditions: [stored('Accepted', 'False')], listeners: [{ name: 'a' }] }
    expect(mergeStatus(live, { conditions: [own('Accepted', 'False')] }, NOW)).toEqual({ listeners: null })
  })

  test('only fields that differ are written; fields of others are not touched', () => {
    const live = { conditions: [stored('Accepted', 'True')], addresses: [], somebodys: 1 }
    expect(mergeStatus(live, { conditions: [own('Accepted', 'True')], addresses: [{ type: 'IPAddress', value: '10.0.0.1' }] }, NOW)).toEqual({
      addresses: [{ type: 'IPAddress', value: '10.0.0.1' }],
    })
  })

  test('what is undefined is as if it were not said', () => {
    expect(mergeStatus({ supportedFeatures: [] }, { supportedFeatures: undefined }, NOW)).toEqual({ supportedFeatures: null })
  })
})
