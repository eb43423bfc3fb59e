import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { send } from '../../harness/client.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import { startQuota, type QuotaCounterpart } from './counterparts.ts'

/** Requests an hour of each bucket, as the server divides them among streams. */
const TOTAL = 600

interface Replica {
  readonly port: number
  readonly dataplane: Dataplane
}

let directory: string
let server: QuotaCounterpart
const replicas: Replica[] = []

async function startReplica(name: string): Promise<Replica> {
  const port = await findFreePort()
  const budgets = [
    {
      name: 'user',
      key: 'request.headers["x-user"]',
      limits: [{ requests: 1, window: 'Day' }],
      quotaService: {
        backendRef: { address: `127.0.0.1:${server.port}` },
        domain: 'shop',
        bucket: { name: 'api' },
        keyName: 'user',
        reportingInterval: '200ms',
      },
    },
  ]
  const file = join(directory, `${name}.json`)
  const routes = [{ policies: { directResponse: { status: 200, body: 'ok' }, budgets } }]
  await writeFile(file, JSON.stringify({ binds: [{ port, listeners: [{ routes }] }] }))
  const replica = { port, dataplane: await startDataplane({ config: { file }, env: { WORKERS: '2' } }) }
  replicas.push(replica)
  return replica
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'quota-'))
  server = await startQuota()
  await startReplica('one')
}, 120_000)

afterAll(async () => {
  for (const { dataplane } of replicas) await dataplane.stop()
  await server?.stop()
  await rm(directory, { recursive: true, force: true })
})

const call = async ({ port }: Replica, user: string): Promise<{ status: number; limit: number }> => {
  const { status, headers } = await send({ port, headers: { 'x-user': user } })
  return { status, limit: Number(headers['x-ratelimit-limit']) }
}
const replicaAt = (index: number): Replica => {
  const replica = replicas[index]
  if (replica === undefined) throw new Error(`there is no replica ${index}`)
  return replica
}
/** Numbers of requests that the server knows of a bucket. */
function reported(user: string): { allowed: number; denied: number } {
  const sums = { allowed: 0, denied: 0 }
  for (const { text } of server.lines) {
    const [, domain, bucket, allowed, denied] = /^report (\S+) (\S+) (\d+) (\d+)$/.exec(text) ?? []
    if (domain !== 'shop' || bucket !== `name=api,user=${user}`) continue
    sums.allowed += Number(allowed)
    sums.denied += Number(denied)
  }
  return sums
}
const sendMany = async (replica: Replica, user: string, count: number): Promise<number[]> => {
  const statuses: number[] = []
  const one = async (): Promise<void> => void (await Promise.all(Array.from({ length: 10 }, async () => statuses.push((await call(replica, user)).status))))
  for (let sent = 0; sent < count; sent += 10) await one()
  return statuses
}

describe('a rate limit quota server in Go', () => {
  test('assigns what all workers of a replica admit together, and gets their use', async () => {
    const startMs = performance.now()
    const statuses = await sendMany(replicaAt(0), 'ann', TOTAL + 100)
    const admitted = statuses.filter((status) => status === 200).length
    // The token bucket begins full, and gets a token each 6 s.
    expect(admitted).toBeGreaterThanOrEqual(TOTAL)
    expect(admitted).toBeLessThanOrEqual(TOTAL + 1 + Math.ceil((performance.now() - startMs) / 6000))
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
    await waitUntil('the report of all requests', () => reported('ann').allowed + reported('ann').denied === TOTAL + 100)
    expect(reported('ann').allowed).toBe(admitted)
  })

  test('denies, abandons, and lets assignments expire', async () => {
    expect(await sendMany(replicaAt(0), 'blocked', 10)).toEqual(Array.from({ length: 10 }, () => 429))
    expect((await call(replicaAt(0), 'fleeting')).status).toBe(200)
    await waitUntil('the end of the assignment', async () => (await call(replicaAt(0), 'fleeting')).status === 503)
    // The bucket may be abandoned before the request uses its assignment.
    expect([200, 503]).toContain((await call(replicaAt(0), 'forgotten')).status)
    await waitUntil('another subscription of an abandoned bucket', async () => {
      await call(replicaAt(0), 'forgotten')
      return server.lines.filter(({ text }) => text.includes('user=forgotten')).length > 1
    })
  })

  test('divides a bucket among replicas, and gives it back when one ends', async () => {
    expect((await call(replicaAt(0), 'bob')).limit).toBe(TOTAL)
    const second = await startReplica('two')
    expect((await call(second, 'bob')).limit).toBe(TOTAL / 2)
    await waitUntil('the share of the first replica', async () => (await call(replicaAt(0), 'bob')).limit === TOTAL / 2)
    await second.dataplane.stop()
    replicas.pop()
    await waitUntil('the whole quota of the first replica', async () => (await call(replicaAt(0), 'bob')).limit === TOTAL)
  })

  test('that is gone leaves assignments in force, and its successor is asked again', async () => {
    const { port } = server
    await server.stop()
    expect((await call(replicaAt(0), 'bob')).status).toBe(200)
    await waitUntil('the loss of the stream', async () =>
      (await replicaAt(0).dataplane.metrics()).includes(`proxy_budget_quota_connected{service="127.0.0.1:${port}",domain="shop"} 0`),
    )
    expect((await call(replicaAt(0), 'new')).status).toBe(503)
    server = await startQuota(port)
    await waitUntil('an assignment of the new server', async () => (await call(replicaAt(0), 'new')).status === 200)
    await waitUntil('the subscription of a bucket in use', () => server.lines.some(({ text }) => text.includes('user=bob')))
  })
})
