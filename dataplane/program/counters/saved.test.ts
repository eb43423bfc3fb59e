import { copyFile, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { Budget } from '#gen/config/types.ts'
import { waitUntil } from '../../../e2e/harness/wait.ts'
import { compose } from '../../request/exchange/compose.ts'
import { HeaderList } from '../../http/headers.ts'
import { compileBudgets } from '../../policy/budgets/index.ts'
import { checkConservation } from '../../policy/budgets/testing.ts'
import { createPolicyState } from '../../policy/state.ts'
import { allocateCells, SharedCells } from '../../runtime/shared-cells.ts'
import type { Logger } from '../../observe/telemetry/log.ts'
import { testExchange } from '../../testing/exchange.ts'
import { allocateBudgets } from '../workers/data.ts'
import { SavedCounters } from './saved.ts'

let directory: string
let path: string
const opened: SavedCounters[] = []
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'counters-'))
  path = join(directory, 'budgets.db')
})
afterEach(async () => {
  for (const saved of opened.splice(0)) await saved.close()
  await rm(directory, { recursive: true })
})

const budgets: readonly Budget[] = [{ name: 'user', key: 'request.headers["x-user"]', limits: [{ requests: 3, window: 'Month' }] }]

/** The budgets of one process. */
async function start(own: readonly Budget[] = budgets) {
  const memory = allocateBudgets()
  const log = { info: () => undefined, warn: () => undefined } as unknown as Logger
  const saved = await SavedCounters.open({ path, memory, log })
  opened.push(saved)
  const policy = compileBudgets([{ policy: 'ns/p', budgets: own }], createPolicyState({ budgetCells: new SharedCells(memory, { evicts: true }) }))
  const send = async (user: string): Promise<number | undefined> => {
    const exchange = testExchange({}, { 'x-user': user })
    const end = (): Promise<void> => {
      exchange.response = { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
      return Promise.resolve()
    }
    await compose([policy], end)(exchange)
    return exchange.response?.status
  }
  const stop = async (): Promise<void> => {
    opened.splice(opened.indexOf(saved), 1)
    await saved.close()
  }
  return { send, stop }
}

describe('counters of budgets in a file', () => {
  test('continue in the next process, by key', async () => {
    const first = await start()
    expect([await first.send('ann'), await first.send('ann'), await first.send('bob')]).toEqual([200, 200, 200])
    await first.stop()
    const second = await start()
    expect([await second.send('ann'), await second.send('ann'), await second.send('bob'), await second.send('bob'), await second.send('bob')]).toEqual([
      200, 429, 200, 200, 429,
    ])
    await second.stop()
    const third = await start()
    expect([await third.send('ann'), await third.send('bob'), await third.send('eve')]).toEqual([429, 429, 200])
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  test('are written while the process runs, so that a crash loses about a second', async () => {
    const { send } = await start()
    expect([await send('ann'), await send('ann'), await send('ann')]).toEqual([200, 200, 200])
    const running = path
    path = join(directory, 'copy.db')
    // The files of a process that did not close them.
    await waitUntil('the counter is in the file', async () => {
      for (const suffix of ['', '-wal']) await copyFile(`${running}${suffix}`, `${path}${suffix}`)
      const database = new DatabaseSync(path)
      try {
        return database.prepare('SELECT count(*) AS count FROM counters').get()?.['count'] === 1
      } finally {
        database.close()
      }
    })
    expect(await (await start()).send('ann')).toBe(429)
  })

  test('of a file that another process uses, or that is of another program or a newer version, do not open', async () => {
    const { stop } = await start()
    await expect(start()).rejects.toThrow('another process uses it')
    await stop()
    const database = new DatabaseSync(path)
    database.exec('PRAGMA user_version = 9')
    database.close()
    await expect(start()).rejects.toThrow('the file of counters has version 9; this program knows 2')
    path = join(directory, 'other.db')
    const other = new DatabaseSync(path)
    other.exec('CREATE TABLE invoices (id INTEGER)')
    other.close()
    await expect(start()).rejects.toThrow('it is a database of another program')
    path = join(directory, 'text.db')
    await writeFile(path, 'no database '.repeat(100))
    await expect(start()).rejects.toThrow('file is not a database')
    path = join(directory, 'missing', 'budgets.db')
    await expect(start()).rejects.toThrow('ENOENT')
  })
})

test('a counter in a file takes back exactly what it was charged, over restarts', async () => {
  await checkConservation(async (epochMs) => {
    const own = await mkdtemp(join(directory, 'run-'))
    const log = { info: () => undefined, warn: () => undefined } as unknown as Logger
    const begin = async () => {
      const memory = allocateCells(64)
      const saved = await SavedCounters.open({ path: join(own, 'budgets.db'), memory, log })
      return { saved, state: createPolicyState({ epochMs, budgetCells: new SharedCells(memory, { evicts: true }) }) }
    }
    let { saved, state } = await begin()
    const states = [state]
    const restart = async () => {
      await saved.close()
      ;({ saved, state } = await begin())
      states[0] = state
    }
    return { budget: {}, states, restart, close: () => saved.close() }
  }, 15)
})
