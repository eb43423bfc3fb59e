import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import { Client } from './load.ts'
import { PRICES, startProvider, type Provider } from './provider.ts'

let directory: string
let provider: Provider
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spend-restart-'))
  provider = await startProvider('127.0.0.1')
})
afterAll(async () => {
  await provider.close()
  await rm(directory, { recursive: true, force: true })
})

/** The tokens that a file has of the only counter; 0: none. Reads copies of the files, because the data plane keeps them locked. */
async function savedIn(path: string): Promise<number> {
  for (const suffix of ['', '-wal']) await copyFile(`${path}${suffix}`, `${path}.copy${suffix}`)
  const database = new DatabaseSync(`${path}.copy`)
  try {
    const select = database.prepare('SELECT max(even & 0xfffffffffff, odd & 0xfffffffffff) AS tokens FROM counters')
    return Number(select.get()?.['tokens'] ?? 0)
  } finally {
    database.close()
  }
}

describe.each([1, 2])('the budgets of a data plane without an operator, with %i workers', (workers) => {
  test('continue when it is stopped, and when it is killed', async () => {
    const port = await findFreePort()
    const path = join(directory, `budgets-${workers}.db`)
    const file = join(directory, `config-${workers}.yaml`)
    const config = {
      config: { budgets: { sqlite: { path } } },
      llm: {
        port,
        addresses: ['127.0.0.1'],
        policies: { budgets: [{ name: 'all', limits: [{ tokens: 1000, window: 'Month' }] }] },
        models: {
          m: {
            openai: { apiKey: 'key', url: `http://127.0.0.1:${provider.port}/v1` },
            policies: { ai: { prices: { m: { input: String(PRICES.input), output: String(PRICES.output) } } } },
          },
        },
      },
    }
    await writeFile(file, JSON.stringify(config))
    const start = (): Promise<Dataplane> => startDataplane({ config: { file }, log: 'warn', env: { WORKERS: String(workers) } })
    const client = new Client(`http://127.0.0.1:${port}`)
    const chat = async (): Promise<number> => (await client.chat('/v1/chat/completions', 'all', { input: 100, output: 200 })).status

    const first = await start()
    expect(await chat()).toBe(200)
    await first.stop()

    const second = await start()
    expect([await chat(), await chat()]).toEqual([200, 200])
    await waitUntil('the counters are saved', async () => (await savedIn(path)) === 900)
    second.program.signal('SIGKILL')
    await second.program.exited

    const third = await start()
    // 100 tokens are left: one request more.
    expect([await chat(), await chat()]).toEqual([200, 429])
    await third.stop()
    client.close()
  })
})
