import { expect, test } from '@jest/globals'
import type { ObjectStatus, Translation } from '../model/translation.ts'
import { createHeldTools } from './held-tools.ts'

const accepted = { type: 'Accepted', status: 'True', reason: 'Accepted', message: 'Backend successfully accepted', observedGeneration: 3 }
const object = (kind: string, name: string): ObjectStatus => ({ group: 'proxy.dev', kind, namespace: 'shop', name, status: { conditions: [accepted] } })
const backend = (key: string) => ({ kind: 'backend' as const, key, message: { key } })
const gateways: Translation['gateways'] = new Map([
  ['infra/one', [backend('shop/tools'), backend('shop/other')]],
  ['infra/two', [backend('shop/tools')]],
])
const heldBy =
  (held: Readonly<Record<string, readonly string[]>>) =>
  (gateway: string): readonly string[] =>
    held[gateway] ?? []

test('a backend names the targets whose tools any of its Gateways holds', () => {
  const statuses = [object('ProxyBackend', 'tools'), object('ProxyBackend', 'other'), object('ProxyPolicy', 'tools')]
  const held = heldBy({ 'infra/one': ['shop/tools/tickets', 'shop/tools/files'], 'infra/two': ['shop/tools/tickets'] })
  const [tools, ...others] = createHeldTools()(statuses, gateways, held)
  expect(tools?.status).toEqual({
    conditions: [
      accepted,
      {
        type: 'ToolsApproved',
        status: 'False',
        reason: 'ToolsHeld',
        message: 'mcp.toolPins: targets files, tickets have tools that clients do not see until they are approved; proxyctl mcp diff shows them [PX1357]',
        observedGeneration: 3,
      },
    ],
  })
  expect([others[0] === statuses[1], others[1] === statuses[2]]).toEqual([true, true])
})

test('a data plane does not speak for backends that its Gateway does not reach', () => {
  const statuses = [object('ProxyBackend', 'other')]
  expect(createHeldTools()(statuses, gateways, heldBy({ 'infra/two': ['shop/other/a', 'shop', ''] }))).toEqual(statuses)
})

test('a status keeps its identity while neither it nor the targets change', () => {
  const add = createHeldTools()
  const status = object('ProxyBackend', 'tools')
  const of = (...targets: string[]) => add([status], gateways, heldBy({ 'infra/one': targets.map((target) => `shop/tools/${target}`) }))[0]
  const first = of('a', 'b')
  expect(of('b', 'a')).toBe(first)
  expect(of('a')).not.toEqual(first)
  expect(of()).toBe(status)
})
