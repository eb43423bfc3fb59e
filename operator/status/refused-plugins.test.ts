import { expect, test } from '@jest/globals'
import { CONTROLLER_NAME } from '#api/names.ts'
import type { ObjectStatus } from '../model/translation.ts'
import type { RefusedPlugin } from '../serve/nack.ts'
import { createRefusals } from './refused-plugins.ts'

const condition = (type: string, reason: string, message: string, status: 'True' | 'False' = 'True') => ({
  type,
  status,
  reason,
  message,
  observedGeneration: 3,
})
const attached = condition('Attached', 'Attached', 'Attached to all targets')
const entry = (gateway: string, accepted: object) => ({
  ancestorRef: { group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'infra', name: gateway },
  controllerName: CONTROLLER_NAME,
  conditions: [accepted, attached],
})
const valid = condition('Accepted', 'Valid', 'Policy accepted')
const partial = condition('Accepted', 'PartiallyValid', 'a secret is missing')
const invalid = condition('Accepted', 'Invalid', 'nothing is valid', 'False')
const policy = (name: string, ...ancestors: object[]): ObjectStatus => ({
  group: 'proxy.dev',
  kind: 'ProxyPolicy',
  namespace: 'shop',
  name,
  status: { ancestors, plugins: [] },
})
const refusedBy =
  (refused: Readonly<Record<string, readonly RefusedPlugin[]>>) =>
  (gateway: string): readonly RefusedPlugin[] =>
    refused[gateway] ?? []

test('a policy whose plugin cannot be loaded is PartiallyValid on that Gateway, and only there', () => {
  const add = createRefusals()
  const summary = { ancestorRef: { group: 'proxy.dev', name: 'StatusSummary' }, controllerName: CONTROLLER_NAME, conditions: [valid] }
  const statuses = [
    policy('p', entry('one', valid), entry('two', partial), entry('three', invalid), entry('four', valid), summary),
    policy('other', entry('one', valid)),
  ]
  const problem = { plugin: 'shop/p/tenants', problem: 'shop/m/index.ts:3:1: Error: broken' }
  const text = 'traffic.plugins: plugin tenants cannot be loaded, and its last good version stays if there is one: shop/m/index.ts:3:1: Error: broken [PX1342]'
  const refused = refusedBy({
    'infra/one': [problem],
    'infra/two': [problem],
    'infra/three': [problem],
    'infra/four': [{ ...problem, plugin: 'shop/pp/tenants' }],
  })
  const result = add(statuses, refused)
  expect(result[1]).toBe(statuses[1])
  expect(result[0]?.status).toEqual({
    plugins: [],
    ancestors: [
      entry('one', condition('Accepted', 'PartiallyValid', text)),
      entry('two', condition('Accepted', 'PartiallyValid', `a secret is missing; ${text}`)),
      entry('three', invalid),
      entry('four', valid),
      summary,
    ],
  })
})

test('a syntax error that the operator reports is not reported again', () => {
  const status = policy('p', entry('one', condition('Accepted', 'PartiallyValid', 'traffic.plugins.0.source.configMapRef: m.ts:1:2: no [PX1322]')))
  const refused = refusedBy({ 'infra/one': [{ plugin: 'shop/p/a', problem: 'm.ts:1:2: no' }] })
  expect(createRefusals()([status], refused)[0]).toBe(status)
})

test('a status keeps its identity while neither it nor the problems change', () => {
  const add = createRefusals()
  const status = policy('p', entry('one', valid))
  const of = (problem: string) => add([status], refusedBy({ 'infra/one': [{ plugin: 'shop/p/a', problem }] }))[0]
  const first = of('x')
  expect(of('x')).toBe(first)
  expect(of('y')).not.toEqual(first)
  expect(add([status], () => [])[0]).toBe(status)
})
