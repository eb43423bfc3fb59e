import { expect, test } from '@jest/globals'
import { NO_SAMPLES, type RolloutSample } from '#api/rollout/samples.ts'
import type { AIModelRolloutState, Backend } from '#gen/config/types.ts'
import type { ConfigMessage, ObjectStatus } from '../model/translation.ts'
import type { KubeObject } from '../source/objects.ts'
import { createSnapshot } from '../source/snapshot.ts'
import { RolloutBook, samplesOf } from './rollouts.ts'

const HOUR = 3_600_000
const models: Backend = {
  key: 'ns/models',
  ai: {
    models: [
      {
        name: 'assistant',
        rules: [
          {
            to: [
              { backendRef: { backend: 'ns/a' }, model: 'old' },
              { backendRef: { backend: 'ns/a' }, model: 'new' },
            ],
            rollout: { steps: [5, 50], every: '10m', minSamples: 10, abortIf: 'errorRate > 0.2' },
          },
        ],
      },
    ],
  },
}
const plain: Backend = { key: 'ns/a', ai: { provider: { providerA: {} } } }
const messages: ConfigMessage[] = [models, plain].map((message) => ({ kind: 'backend', key: message.key, message }))
const translation = {
  gateways: new Map([
    ['ns/gw', messages],
    ['ns/other', messages],
  ]),
}
const served = (book: RolloutBook): AIModelRolloutState[] =>
  (book.serve(translation).gateways.get('ns/gw')?.[0]?.message as Backend | undefined)?.rollouts ?? []
const sample = (state: AIModelRolloutState, errors: number): RolloutSample => ({
  backend: 'ns/models', model: 'assistant', rule: 0, id: state.id, step: state.step, target: { ...NO_SAMPLES, attempts: 10, errors }, baseline: NO_SAMPLES,
}) // prettier-ignore

test('the leader moves rollouts on, once for all Gateways, and names what changed', () => {
  const book = new RolloutBook()
  expect(served(book)).toEqual([])
  expect(book.advance(translation, [], 0)).toEqual([{ backend: 'ns/models', state: expect.objectContaining({ step: 0, weight: 5 }) }])
  const [first] = served(book)
  if (first === undefined) throw new Error('no state')
  expect(book.advance(translation, [], 0)).toBeUndefined()
  expect(book.advance(translation, [sample(first, 0)], HOUR)).toEqual([{ backend: 'ns/models', state: expect.objectContaining({ step: 1, weight: 50 }) }])
  const [second] = served(book)
  if (second === undefined) throw new Error('no state')
  expect(book.advance(translation, [sample(second, 9)], HOUR)).toEqual([
    { backend: 'ns/models', state: expect.objectContaining({ phase: 'Aborted', weight: 0 }) },
  ])
})

test('messages and statuses without a change keep their identity', () => {
  const book = new RolloutBook()
  book.advance(translation, [], 0)
  const status: ObjectStatus = { group: 'proxy.dev', kind: 'ProxyBackend', namespace: 'ns', name: 'models', status: { conditions: [] } }
  const before = [book.serve(translation).gateways.get('ns/gw'), book.addTo([status])]
  book.advance(translation, [], 1)
  const after = [book.serve(translation).gateways.get('ns/gw'), book.addTo([status])]
  for (const [index, list] of before.entries()) for (const [place, item] of (list ?? []).entries()) expect(after[index]?.[place]).toBe(item)
  expect(book.serve(translation).gateways.get('ns/gw')?.[1]).toBe(messages[1])
  expect(book.addTo([status])[0]?.status).toMatchObject({ rollouts: [{ model: 'assistant', phase: 'Progressing' }] })
})

test('another replica, or a new leader, continues from the statuses', () => {
  const leader = new RolloutBook()
  leader.advance(translation, [], 0)
  const [first] = served(leader)
  if (first === undefined) throw new Error('no state')
  leader.advance(translation, [sample(first, 0)], HOUR)
  const object = {
    kind: 'ProxyBackend',
    metadata: { namespace: 'ns', name: 'models' },
    spec: {},
    status: { rollouts: served(leader) },
  } as unknown as KubeObject
  const other = new RolloutBook()
  const snapshot = createSnapshot([object])
  expect(other.read(snapshot, () => ({ object }))).toBe(true)
  expect(other.read(snapshot, () => ({ object }))).toBe(false)
  expect(served(other)).toEqual(served(leader))
  expect(other.advance(translation, [], HOUR)).toBeUndefined()
})

test('data planes speak only for backends that their Gateway reaches', () => {
  const own = { ...sample({ id: 'i', step: 0 } as AIModelRolloutState, 1) }
  const foreign = { ...own, backend: 'other/models' }
  const found = samplesOf(translation, () => [own, foreign])
  expect(found.map(({ backend, target }) => [backend, target.attempts])).toEqual([['ns/models', 20]])
})
