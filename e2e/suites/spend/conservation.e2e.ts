import { afterAll, beforeAll, describe, test } from '@jest/globals'
import { checkConservation, type Books } from '../../../dataplane/policy/budgets/testing.ts'
import { createPolicyState } from '../../../dataplane/policy/state.ts'
import { openPostgres } from '../../../dataplane/program/postgres.ts'
import { openRedis } from '../../../dataplane/program/redis.ts'
import { readPostgresSettings } from '../../../dataplane/store/postgres/settings.ts'
import { readRedisSettings } from '../../../dataplane/store/redis/settings.ts'
import { scriptStores, statementStores } from '../../../dataplane/runtime/value-store.ts'
import { createLogging } from '../../../dataplane/observe/telemetry/log.ts'
import { createRegistry, type Registry } from '../../../dataplane/observe/telemetry/metrics/registry.ts'
import { Postgres } from '../callouts/postgres.ts'
import { Redis } from '../callouts/redis.ts'

const RUNS = 40
const logging = createLogging({ level: 'error', writer: { dropped: 0, write: () => true, flush: () => Promise.resolve(), flushSync: () => undefined } })

/** Two replicas, each with a connection of its own. */
async function booksIn(store: 'Redis' | 'Postgres', connect: (registry: Registry) => Promise<unknown>): Promise<(epochMs: () => number) => Books> {
  const registries = [createRegistry(), createRegistry()]
  const running = new Set<Promise<unknown>>()
  const track = <T>(call: Promise<T>): Promise<T> => {
    running.add(call)
    void call.finally(() => running.delete(call))
    return call
  }
  for (const registry of registries) {
    await connect(registry)
    const [scripts, statements] = [scriptStores.get(registry), statementStores.get(registry)]
    if (scripts !== undefined) scriptStores.set(registry, { evaluate: (...args) => track(scripts.evaluate(...args)) })
    if (statements !== undefined) statementStores.set(registry, { query: (...args) => track(statements.query(...args)) })
  }
  const flush = async (): Promise<void> => {
    await new Promise(setImmediate)
    await Promise.all(running)
  }
  return (epochMs) => ({ budget: { store }, states: registries.map((registry) => createPolicyState({ epochMs, registry })), flush })
}

describe('counters in Redis', () => {
  let server: Redis
  beforeAll(async () => (server = await Redis.start({ isDurable: true })), 60_000)
  afterAll(() => server.delete())

  test('take back exactly what they were charged', async () => {
    const { port, files } = server
    const settings = readRedisSettings({ url: `rediss://localhost:${port}`, passwordFile: files.password, caFile: files.authority })
    if (typeof settings === 'string') throw new Error(settings)
    await checkConservation(await booksIn('Redis', (registry) => openRedis(settings, logging, registry)), RUNS)
  }, 300_000)
})

describe('counters in PostgreSQL', () => {
  let server: Postgres
  beforeAll(async () => (server = await Postgres.start()), 120_000)
  afterAll(() => server.delete())

  test('take back exactly what they were charged', async () => {
    const settings = readPostgresSettings('config.postgres', {
      url: `postgres://ledger@localhost:${server.port}/postgres`,
      passwordFile: server.files.password,
      caFile: server.files.authority,
    })
    if (typeof settings === 'string') throw new Error(settings)
    await checkConservation(await booksIn('Postgres', (registry) => openPostgres(settings, registry)), RUNS)
  }, 300_000)
})
