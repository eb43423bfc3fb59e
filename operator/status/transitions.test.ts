import { describe, expect, test } from '@jest/globals'
import { findTransitions } from './transitions.ts'

const condition = (text: string, message = 'm', observedGeneration = 1) => {
  const [type = '', status = '', reason = ''] = text.split(' ')
  return { type, status, reason, message, observedGeneration }
}
const on = (...conditions: object[]) => ({ conditions })
const parents =
  (...names: string[]) =>
  (each: object) => ({
    parents: names.map((name) => ({ parentRef: { kind: 'Gateway', namespace: 'ns', name }, controllerName: 'proxy.dev/proxy', conditions: [each] })),
  })
const good = condition('Programmed True Programmed')
const bad = condition('Programmed False DeploymentFailed')
const pending = condition('Programmed False Pending', 'no pods')
const partial = condition('PartiallyInvalid True InvalidParameters')
const shadowed = condition('proxy.dev/Shadowed True LowerPrecedence')

describe('transitions of conditions', () => {
  test.each<[string, object | undefined, object, string[]]>([
    ['a new good condition', undefined, on(good), []],
    ['a new bad condition', undefined, on(bad), ['Warning DeploymentFailed Programmed is False: m']],
    ['a new Gateway that waits for its pods', undefined, on(pending), []],
    [
      'the default conditions of a CRD',
      on(condition('Accepted Unknown Pending'), condition('Programmed Unknown Pending')),
      on(condition('Accepted True Accepted'), pending),
      [],
    ],
    ['a Gateway that loses its pods', on(good), on(pending), ['Warning Pending Programmed is False: no pods']],
    ['a Gateway that is programmed again', on(pending), on(good), ['Normal Programmed Programmed is True: m']],
    ['a Gateway whose objects are applied again', on(bad), on(pending), []],
    ['an equal condition', on(bad), on(bad), []],
    ['another message of one generation', on(bad), on({ ...bad, message: 'n' }), []],
    [
      'another message of a newer generation',
      on(bad),
      on({ ...bad, message: 'n', observedGeneration: 2 }),
      ['Warning DeploymentFailed Programmed is False: n'],
    ],
    ['another reason', on(bad), on({ ...bad, reason: 'Invalid' }), ['Warning Invalid Programmed is False: m']],
    ['a warning of parameters', on(good), on(good, partial), ['Warning InvalidParameters PartiallyInvalid is True: m']],
    ['a warning that is gone', on(good, partial), on(good), ['Normal InvalidParameters PartiallyInvalid is no longer True']],
    ['a route that gets requests again', on(good, shadowed), on(good), ['Normal LowerPrecedence proxy.dev/Shadowed is no longer True']],
    [
      'a bad condition of a listener',
      undefined,
      { listeners: [{ name: 'http', ...on(condition('Conflicted True HostnameConflict')) }] },
      ['Warning HostnameConflict Conflicted is True of listener http: m'],
    ],
    [
      'one fault for several parents',
      undefined,
      parents('a', 'b', 'c', 'd')(condition('ResolvedRefs False BackendNotFound')),
      ['Warning BackendNotFound ResolvedRefs is False for Gateway ns/a, for Gateway ns/b, for Gateway ns/c and 1 more: m'],
    ],
    ['a policy that is partly valid', undefined, on(condition('Accepted True PartiallyValid')), ['Warning PartiallyValid Accepted is True: m']],
    [
      'conditions of other controllers',
      undefined,
      { ...on(condition('Ready False Broken')), parents: [{ controllerName: 'example.com/other', conditions: [bad] }] },
      [],
    ],
  ])('%s is reported as expected', (_, before, after, expected) => {
    expect(findTransitions(before, after).map(({ type, reason, message }) => `${type} ${reason} ${message}`)).toEqual(expected)
  })
})
