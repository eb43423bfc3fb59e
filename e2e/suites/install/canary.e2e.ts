import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { apply, conditionOf, get, installProxy, kubectl, list, read, startQuickstart, until, untilStatus } from './cluster.ts'

const NAMESPACE = 'canary'
let url: string
/** Pod name by version: the two pods of the quickstart, one per Service. */
const pods = new Map<string, string>()

beforeAll(async () => {
  await installProxy()
  url = `http://${await startQuickstart(NAMESPACE)}/`
  const running = await list('pods', NAMESPACE, 'app=echo')
  for (const [index, version] of ['v1', 'v2'].entries()) {
    const pod = running[index]?.metadata.name ?? ''
    pods.set(version, pod)
    await kubectl('-n', NAMESPACE, 'label', 'pod', pod, `version=${version}`)
    const spec = { selector: { app: 'echo', version }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] }
    await apply(NAMESPACE, { apiVersion: 'v1', kind: 'Service', metadata: { name: `echo-${version}` }, spec })
  }
  await untilStatus(url, 200)
})
afterAll(() => kubectl('delete', 'namespace', NAMESPACE, '--ignore-not-found', '--wait=false'))

let shifts = 0
/** Sets the weights and waits until they are in effect and every version with a weight responds. */
async function shift(weights: Readonly<Record<string, number>>): Promise<void> {
  const backendRefs = Object.entries(weights).map(([version, weight]) => ({ name: `echo-${version}`, port: 80, weight }))
  // A response header identifies the config in effect; the responding version does not.
  const value = `${(shifts += 1)}`
  const filters = [{ type: 'RequestHeaderModifier', requestHeaderModifier: { set: [{ name: 'x-shift', value }] } }]
  await kubectl('-n', NAMESPACE, 'patch', 'httproute', 'echo', '--type=merge', '-p', JSON.stringify({ spec: { rules: [{ filters, backendRefs }] } }))
  await until(`shift ${value} is in force`, async () => {
    const { status, body } = await get(url)
    return status === 200 && (JSON.parse(body) as { headers: Record<string, string> }).headers['x-shift'] === value
  })
  const wanted = Object.keys(weights).filter((version) => weights[version] !== 0)
  await until(`${wanted.join(' and ')} respond`, async () => [...(await count(60)).keys()].sort().join() === wanted.join())
}

/** Sends requests, 10 at a time, and counts responses by version. */
async function count(requests: number): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for (let sent = 0; sent < requests; sent += 10) {
    const responses = await Promise.all(Array.from({ length: 10 }, () => get(url)))
    for (const { status, body } of responses) {
      const pod = status === 200 ? (JSON.parse(body) as { pod: string }).pod : ''
      const version = [...pods].find(([, name]) => name === pod)?.[0] ?? `status ${status}`
      counts.set(version, (counts.get(version) ?? 0) + 1)
    }
  }
  return counts
}

test('the second of the weights 90 and 10 gets a tenth of the requests', async () => {
  await shift({ v1: 90, v2: 10 })
  const counts = await count(500)
  expect([...counts.keys()].sort()).toEqual(['v1', 'v2'])
  // About 50 of 500; a random result outside these bounds occurs less than once in 10^12 runs.
  expect(counts.get('v2')).toBeGreaterThan(5)
  expect(counts.get('v2')).toBeLessThan(105)
  expect(conditionOf(await read('httproute', 'echo', NAMESPACE), 'ResolvedRefs')?.status).toBe('True')
})

test.each([
  ['a backend of weight 0 gets no requests', { v1: 1, v2: 0 }, 'v1'],
  ['the canary gets all requests if it has all the weight', { v1: 0, v2: 1 }, 'v2'],
])('%s', async (_, weights, version) => {
  await shift(weights)
  expect(Object.fromEntries(await count(200))).toEqual({ [version]: 200 })
})
