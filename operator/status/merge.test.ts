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
    [
      'are written with the time if there are none',
      undefined,
      [own('Accepted', 'True')],
      { conditions: [own('Accepted', 'True', { lastTransitionTime: NOW })] },
    ],
    ['are not written if they are equal', { conditions: [stored('Accepted', 'True')] }, [own('Accepted', 'True')], undefined],
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

  test('get ours added, and those of other controllers stay', () => {
    expect(mergeStatus({ parents: [foreign] }, { parents: [entry('gw', OURS, [own('Accepted', 'True')])] }, NOW)).toEqual({
      parents: [foreign, entry('gw', OURS, [own('Accepted', 'True', { lastTransitionTime: NOW })])],
    })
  })

  test('lose ours alone when ours has no conditions any more', () => {
    expect(mergeStatus({ parents: [entry('gw', OURS, [stored('Accepted', 'True')]), foreign] }, { parents: [] }, NOW)).toEqual({ parents: [foreign] })
  })

  test('are not written when only their order or those of others differ', () => {
    const live = { parents: [entry('gw', OURS, [stored('Accepted', 'True')]), foreign] }
    expect(mergeStatus(live, { parents: [entry('gw', OURS, [own('Accepted', 'True')])] }, NOW)).toBeUndefined()
  })

  test('keep their times by parentRef, not by position', () => {
    const live = { parents: [entry('a', OURS, [stored('Accepted', 'True')]), entry('b', OURS, [stored('Accepted', 'False')])] }
    expect(mergeStatus(live, { parents: [entry('b', OURS, [own('Accepted', 'False')])] }, NOW)).toEqual({
      parents: [entry('b', OURS, [stored('Accepted', 'False')])],
    })
  })

  test('are not written for the group and kind that the CRD filled in', () => {
    const ours = { ancestorRef: { group: 'proxy.dev', name: 'StatusSummary' }, controllerName: OURS, conditions: [own('Attached', 'False')] }
    const filled = { group: 'proxy.dev', kind: 'Gateway', name: 'StatusSummary' }
    const live = { ancestors: [{ ...ours, ancestorRef: filled, conditions: [stored('Attached', 'False')] }] }
    expect(mergeStatus(live, { ancestors: [ours] }, NOW)).toBeUndefined()
    expect(mergeStatus(undefined, { ancestors: [ours] }, NOW)).toMatchObject({ ancestors: [{ ancestorRef: filled }] })
  })

  test('are merged as ancestors of policies, too', () => {
    const ancestor = (name: string, controllerName: string, conditions: object[]) => ({ ancestorRef: parent(name), controllerName, conditions })
    const other = ancestor('x', 'example.com/other', [])
    expect(mergeStatus({ ancestors: [other, ancestor('old', OURS, [])] }, { ancestors: [ancestor('gw', OURS, [own('Accepted', 'True')])] }, NOW)).toEqual({
      ancestors: [other, ancestor('gw', OURS, [own('Accepted', 'True', { lastTransitionTime: NOW })])],
    })
  })
})

describe('fields of the operator', () => {
  test('replace listeners, which keep their times by name', () => {
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

  test('remove the listeners of a rejected ListenerSet', () => {
    const live = { conditions: [stored('Accepted', 'False')], listeners: [{ name: 'a' }] }
    expect(mergeStatus(live, { conditions: [own('Accepted', 'False')] }, NOW)).toEqual({ listeners: null })
  })

  test('are written only if they differ, and fields of others are not touched', () => {
    const live = { conditions: [stored('Accepted', 'True')], addresses: [], somebodys: 1 }
    expect(mergeStatus(live, { conditions: [own('Accepted', 'True')], addresses: [{ type: 'IPAddress', value: '10.0.0.1' }] }, NOW)).toEqual({
      addresses: [{ type: 'IPAddress', value: '10.0.0.1' }],
    })
  })

  test('may be undefined, which is as if they were absent', () => {
    expect(mergeStatus({ supportedFeatures: [] }, { supportedFeatures: undefined }, NOW)).toEqual({ supportedFeatures: null })
  })
})
