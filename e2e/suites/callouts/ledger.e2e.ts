import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startMockProvider, type MockProvider } from '../../harness/llm/provider.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import { Postgres } from './postgres.ts'

let directory: string
let mock: MockProvider
let postgres: Postgres
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ledger-postgres-'))
  mock = await startMockProvider({})
  postgres = await Postgres.start()
}, 180_000)
afterAll(async () => {
  await postgres.delete()
  await mock.close()
  await rm(directory, { recursive: true, force: true })
})

interface Running {
  readonly dataplane: Dataplane
  /** Sends chat completions one after another. Returns the tokens of the prompts. */
  chat(count: number): Promise<number>
}

async function start(name: string, settings: object, env: Readonly<Record<string, string>> = {}): Promise<Running> {
  const [port = 0] = await findFreePorts(1)
  const file = join(directory, `${name}.yaml`)
  const url = `postgres://ledger@localhost:${postgres.port}/postgres`
  const config = {
    config: { ledger: { postgres: { url, passwordFile: postgres.files.password, caFile: postgres.files.authority, ...settings } } },
    llm: {
      port,
      addresses: ['127.0.0.1'],
      models: { m: { openai: { apiKey: 'provider-key', url: `${mock.url}/v1` }, policies: { ai: { prices: { m: { input: '1000000', output: '0' } } } } } },
    },
  }
  await writeFile(file, JSON.stringify(config))
  const dataplane = await startDataplane({ config: { file }, env })
  const chat = async (count: number): Promise<number> => {
    let tokens = 0
    for (let index = 0; index < count; index++) {
      const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x '.repeat(index % 7) }] })
      const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
      const { usage } = (await response.json()) as { usage: { prompt_tokens: number } }
      expect(response.status).toBe(200)
      tokens += usage.prompt_tokens
    }
    return tokens
  }
  return { dataplane, chat }
}

interface Sums {
  readonly requests: number
  readonly inputTokens: number
  readonly cost: number
}

async function sumsOf({ dataplane }: Running): Promise<Sums & { store: string }> {
  const report = (await (await dataplane.admin('/api/v1/spend?by=')).json()) as { rows: Sums[]; store: string }
  const { requests, inputTokens, cost } = report.rows[0] ?? { requests: 0, inputTokens: 0, cost: 0 }
  return { requests, inputTokens, cost, store: report.store }
}

const logOf = ({ dataplane }: Running): string => dataplane.program.lines.map(({ text }) => text).join('\n')

describe('a ledger in PostgreSQL', () => {
  test('adds up the requests of all data planes with its owner, once each, while the server restarts', async () => {
    const [one, two, other] = await Promise.all([
      start('one', { owner: 'shop/ai' }),
      start('two', { owner: 'shop/ai' }, { WORKERS: '2' }),
      start('other', { owner: 'other' }),
    ])
    try {
      let tokens = (await one.chat(20)) + (await two.chat(30))
      await other.chat(3)
      await waitUntil('all requests are stored', async () => (await sumsOf(one)).requests === 50)
      await postgres.stop()
      tokens += (await one.chat(40)) + (await two.chat(10))
      await waitUntil('both report that requests wait', () => [one, two].every((running) => logOf(running).includes('PX4023')))
      await postgres.resume()
      tokens += await one.chat(10)
      await waitUntil('the requests that waited are stored', async () => (await sumsOf(two)).requests === 110)
      const [first, second] = [await sumsOf(one), await sumsOf(two)]
      expect(first).toEqual({ requests: 110, inputTokens: tokens, cost: tokens, store: second.store })
      expect(second).toEqual(first)
      expect(await sumsOf(other)).toMatchObject({ requests: 3 })
      expect((await sumsOf(other)).store).not.toBe(first.store)
      expect(await one.dataplane.metrics()).toMatch(/ledger_rows_stored_total 70\n/)
      expect(logOf(one)).not.toContain('p@ss')
    } finally {
      await Promise.all([one, two, other].map(({ dataplane }) => dataplane.stop(30_000)))
    }
  })

  test('stores the requests right before the end of a data plane', async () => {
    const ended = await start('ended', { owner: 'ended' })
    await ended.chat(5)
    await ended.dataplane.stop(30_000)
    const reader = await start('reader', { owner: 'ended' })
    try {
      expect(await sumsOf(reader)).toMatchObject({ requests: 5 })
    } finally {
      await reader.dataplane.stop(30_000)
    }
  })

  test.each<[string, object, RegExp]>([
    ['its password is wrong', { passwordFile: '/etc/hostname' }, /PX4023.*password authentication failed/],
    ['its certificate cannot be verified', { caFile: undefined }, /PX4023.*(unable to verify|unable to get)/],
  ])('logs the cause and serves requests if %s', async (name, settings, line) => {
    const running = await start(name.replaceAll(' ', '-'), settings)
    try {
      await running.chat(1)
      await waitUntil('the log has the cause', () => line.test(logOf(running)))
      expect((await running.dataplane.admin('/api/v1/spend')).status).toBe(503)
    } finally {
      await running.dataplane.stop(30_000)
    }
  })
})
