import { describe, expect, test } from '@jest/globals'
import { definitions } from '#api/v1alpha1/definitions.ts'
import { reachableFrom } from '#api/schema.ts'
import type { Traffic } from '#gen/config/types.ts'
import { BufferBody } from '../http/body.ts'
import { start } from './failures-testing.ts'

const backendRef = { invalid: 'BACKEND_NOT_FOUND' } as const
const service = { backendRef, domain: 'd', descriptors: [{ entries: [{ name: 'n', expression: '"v"' }] }] }
const OPEN = 'applies unless a value is absent'

/** Each section with a condition: the section, what it does to a request to which it applies, and what happens if the condition cannot be evaluated. */
const sections: Readonly<Record<string, readonly [section: (when: string) => Traffic, effect: unknown, failure: string]>> = {
  'ExtAuth.when': [(when) => ({ extAuth: { backendRef, grpc: {}, when } }), 403, 'applies'],
  'ExtProc.when': [(when) => ({ extProc: { backendRef, when } }), 500, 'applies'],
  'Plugin.when': [(when) => ({ plugins: [{ name: 'p', source: { configMapRef: { invalid: 'ConfigMap not found' } }, when }] }), 500, 'applies'],
  'LocalRateLimit.when': [(when) => ({ rateLimit: { local: [{ requests: 1, unit: 'Hours', when }] } }), 429, 'applies'],
  'GlobalRateLimit.when': [(when) => ({ rateLimit: { global: { ...service, when } } }), 500, 'applies'],
  'Transformation.when': [(when) => ({ transformation: { response: { set: [{ name: ':status', value: '418' }] }, when } }), 418, OPEN],
  'DirectResponse.when': [(when) => ({ directResponse: { status: 418, when } }), 418, OPEN],
  'FaultInjection.when': [(when) => ({ faultInjection: { abort: { status: 418 }, when } }), 418, 'does not apply'],
}

test('each section of traffic policies with a condition is here', () => {
  const found = reachableFrom(definitions, ['Traffic']).filter((name) => definitions[name]?.properties?.['when'] !== undefined)
  expect(found.map((name) => `${name}.when`).toSorted()).toEqual(Object.keys(sections).toSorted())
})

describe.each(Object.entries(sections))('%s', (_, [section, effect, failure]) => {
  /** Status of the second of two requests: the first one uses up a rate limit. */
  const statusOf = async (when: string, lines: [string, string][] = [], body = '{"a":1}'): Promise<number | undefined> => {
    const send = start({ traffic: section(when) })
    await send(lines, new BufferBody(body))
    return (await send(lines, new BufferBody(body))).status
  }

  test('applies to requests for which the condition is true, and to no other ones', async () => {
    const when = 'request.method == "POST" && request.headers["x-a"] == "1"'
    expect([await statusOf(when, [['x-a', '1']]), await statusOf(when, [['x-a', '2']])]).toEqual([effect, 200])
  })

  test('can read the body of the request, which is forwarded nevertheless', async () => {
    expect([await statusOf('json(request.body).a == 1'), await statusOf('json(request.body).a == 2')]).toEqual([effect, 200])
    const { forwarded } = await start({ traffic: section('json(request.body).a == 2') })([], new BufferBody('{"a":1}'))
    expect(forwarded).toMatchObject([{ bytes: 7 }])
  })

  test(`${failure} if the condition cannot be evaluated`, async () => {
    const absent = await statusOf('request.headers["x-a"] == "1"')
    const failed = [await statusOf('json(request.body).a == 1', [], 'no JSON'), await statusOf('1 / 0 == 1'), await statusOf('1 +'), await statusOf('"text"')]
    expect(absent).toBe(failure === 'applies' ? effect : 200)
    expect(failed).toEqual(failed.map(() => (failure === 'does not apply' ? 200 : effect)))
  })
})
