import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { createManualClock } from '../serve/testing.ts'
import { createEventRecorder, type EventRecorder, type RecordedEvent } from './events.ts'
import { collections, startFakeApi, type FakeApi } from './testing.ts'
import { until } from '../../e2e/harness/wait.ts'

const { events } = collections
const MINUTE = 60_000

let api: FakeApi
let recorder: EventRecorder
let clock: ReturnType<typeof createManualClock>
const errors: string[] = []

beforeEach(async () => {
  api = await startFakeApi({ install: [events] })
  clock = createManualClock()
  errors.length = 0
  recorder = createEventRecorder({
    connection: api.connection,
    clock,
    now: () => new Date('2026-06-01T00:00:00Z'),
    onError: (error) => errors.push((error as Error).message),
  })
})
afterEach(async () => {
  recorder.close()
  await api.close()
})

const event = (name: string, message = 'm', namespace = 'default'): RecordedEvent => ({
  object: {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name, namespace, uid: `uid-${name}`, generation: 1, creationTimestamp: '' },
  },
  type: 'Warning',
  reason: 'BackendNotFound',
  message,
})
const sent = async (): Promise<string[]> => {
  await until(() => recorder.pending() === 0)
  return api.list(events).map(({ message, count, involvedObject }) => `${(involvedObject as { name: string }).name} ${String(message)} x${String(count)}`)
}

describe('the event recorder', () => {
  test('creates an Event in the namespace of the object, and one of a cluster-scoped object in default', async () => {
    recorder.record(event('a', 'x'.repeat(2000)))
    recorder.record(event('class', 'm', ''))
    await sent()
    const [first, second] = api.list(events)
    expect(first).toMatchObject({
      metadata: { namespace: 'default', name: expect.stringMatching(/^a-/) },
      involvedObject: { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute', namespace: 'default', name: 'a', uid: 'uid-a' },
      type: 'Warning',
      reason: 'BackendNotFound',
      message: 'x'.repeat(1024),
      source: { component: 'proxy.dev/proxy' },
      firstTimestamp: '2026-06-01T00:00:00Z',
      count: 1,
    })
    expect(second?.metadata.namespace).toBe('default')
    expect(second).not.toHaveProperty('involvedObject.namespace')
  })

  test('counts an equal Event of the last ten minutes, and creates another one later or after its deletion', async () => {
    for (let n = 0; n < 3; n++) recorder.record(event('a'))
    recorder.record(event('a', 'other'))
    expect(await sent()).toEqual(['a m x3', 'a other x1'])
    await clock.advance(11 * MINUTE)
    recorder.record(event('a'))
    expect(await sent()).toEqual(['a m x3', 'a other x1', 'a m x1'])
    for (const { metadata } of api.list(events)) api.drop(events, 'default', metadata.name)
    recorder.record(event('a'))
    expect(await sent()).toEqual(['a m x1'])
  })

  test('sends 25 Events of an object at once and then one in five minutes', async () => {
    for (let n = 0; n < 40; n++) recorder.record(event('a', `m${n}`))
    recorder.record(event('b'))
    expect(await sent()).toHaveLength(26)
    await clock.advance(5 * MINUTE)
    for (let n = 0; n < 3; n++) recorder.record(event('a', `n${n}`))
    expect((await sent()).slice(26)).toEqual(['a n0 x1'])
  })

  test('drops Events beyond a thousand that wait, and reports their number', async () => {
    for (let n = 0; n < 1010; n++) recorder.record(event(`r${n}`))
    expect(await sent()).toHaveLength(1001)
    expect(errors).toEqual(['9 Events were dropped: more than 1000 were waiting'])
  })

  test('reports an Event that the API server rejects and goes on with the next one', async () => {
    api.fail('POST', events, 403)
    recorder.record(event('a'))
    await sent()
    api.fail('POST', events)
    recorder.record(event('b'))
    expect(await sent()).toEqual(['b m x1'])
    expect(errors).toEqual([expect.stringContaining('Injected')])
  })

  test('sends nothing after it is closed', async () => {
    recorder.close()
    recorder.record(event('a'))
    expect(await sent()).toEqual([])
  })
})
