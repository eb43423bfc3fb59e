import { readFile } from 'node:fs/promises'
import { expect, test } from '@jest/globals'
import { createClient } from '@redis/client'
import { waitUntil } from '../../harness/wait.ts'
import { Redis } from '../callouts/redis.ts'
import { testBudgetsIn, type CounterServer, type StoredCounter } from './stores.ts'

const connect = (port: number, ca: string) => createClient({ password: 'p@ss:word/1', socket: { host: 'localhost', port, tls: true as const, ca } })

/** Debian's Redis server. */
class RedisCounters implements CounterServer {
  readonly #redis: Redis

  private constructor(redis: Redis) {
    this.#redis = redis
  }

  static async start(): Promise<RedisCounters> {
    return new RedisCounters(await Redis.start({ isDurable: true }))
  }

  get settings(): object {
    const { port, files } = this.#redis
    return { redis: { url: `rediss://localhost:${port}`, passwordFile: files.password, caFile: files.authority } }
  }

  stop = (): Promise<void> => this.#redis.stop()
  resume = (): Promise<void> => this.#redis.resume()
  erase = (): void => this.#redis.erase()
  freeze = (isFrozen: boolean): void => this.#redis.signal(isFrozen ? 'SIGSTOP' : 'SIGCONT')
  delete = (): Promise<void> => this.#redis.delete()

  /** Runs a command on the counters. */
  async run<T>(call: (client: ReturnType<typeof connect>) => Promise<T>): Promise<T> {
    const { port, files } = this.#redis
    const client = connect(port, await readFile(files.authority, 'utf8'))
    client.on('error', () => undefined)
    await client.connect()
    try {
      return await call(client)
    } finally {
      client.destroy()
    }
  }

  counters(): Promise<StoredCounter[]> {
    return this.run(async (client) => {
      const ids = await client.keys('proxy:budget:*')
      return Promise.all(
        ids.map(async (id) => {
          const { v, g, a, ...reservations } = await client.hGetAll(id)
          return { id, amount: Number(v), reservations: Object.keys(reservations).length, origin: g, alert: a }
        }),
      )
    })
  }
}

testBudgetsIn('Redis', RedisCounters.start, (fleetOf) => {
  test('a value of another program is an error, and rejects', async () => {
    const fleet = fleetOf()
    const { server } = fleet
    const known = await fleet.known()
    await waitUntil('the budget is charged', async () => (await fleet.get('broken')).status === 200)
    const [{ id } = { id: '' }] = await fleet.counters(known)
    await server.run(async (client) => {
      await client.del(id)
      await client.set(id, 'x'.repeat(1000))
    })
    expect((await fleet.get('broken')).status).toBe(503)
    await server.run(async (client) => {
      await client.del(id)
      await client.hSet(id, 'v', 'many')
    })
    expect((await fleet.get('broken')).status).toBe(503)
    await server.run((client) => client.del(id))
    expect((await fleet.get('broken')).status).toBe(200)
  })
})
