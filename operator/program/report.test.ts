import { describe, expect, test } from '@jest/globals'
import { findTroubles, summarizeGateways } from './report.ts'

const condition = (type: string, status: 'True' | 'False', reason: string = type) => ({
  type,
  status,
  reason,
  message: `${type} is ${status}`,
  observedGeneration: 1,
})

describe('findTroubles', () => {
  test.each([
    ['a Gateway that is accepted', { conditions: [condition('Accepted', 'True')] }, []],
    [
      'a listener without its certificate',
      { listeners: [{ name: 'https', conditions: [condition('ResolvedRefs', 'False'), condition('Conflicted', 'False')] }] },
      ['x/https ResolvedRefs'],
    ],
    ['a listener in conflict', { listeners: [{ name: 'a', conditions: [condition('Conflicted', 'True')] }] }, ['x/a Conflicted']],
    [
      'a route whose backend is missing',
      { parents: [{ conditions: [condition('Accepted', 'True'), condition('ResolvedRefs', 'False')] }] },
      ['x ResolvedRefs'],
    ],
    ['a policy that is only partly in force', { ancestors: [{ conditions: [condition('Accepted', 'True', 'PartiallyValid')] }] }, ['x Accepted']],
  ])('%s', (_, status, expected) => {
    expect(findTroubles([{ group: 'g', kind: 'K', namespace: 'ns', name: 'x', status }]).map(({ name, type }) => `${name} ${type}`)).toEqual(expected)
  })
})

test('summarizeGateways counts the rules of each listener', () => {
  const gateway = { namespace: 'ns', name: 'gw' }
  const messages = [
    { kind: 'bind', key: 'b', message: { key: 'b', port: 80 } },
    { kind: 'listener', key: 'l', message: { key: 'l', bind: 'b', gateway, name: 'http', protocol: 'HTTP', hostname: '*.a.com' } },
    { kind: 'route', key: 'r', message: { key: 'r', listeners: ['l'] } },
    { kind: 'route', key: 's', message: { key: 's', listeners: ['l'] } },
  ] as const
  expect(summarizeGateways({ gateways: new Map([['ns/gw', messages]]), statuses: [] }, new Map())).toEqual([
    { namespace: 'ns', name: 'gw', listeners: [{ name: 'http', port: 80, protocol: 'HTTP', hostname: '*.a.com', routes: 2 }] },
  ])
})
