import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { columns, type Column } from '../../../dataplane/store/ledger/columns.ts'
import { LedgerStore } from '../../../dataplane/store/ledger/sqlite-store.ts'
import { batchOf } from '../../../dataplane/store/ledger/testing.ts'
import { main } from '../proxyctl.ts'

let directory: string
let file: string
const HOSTILE = '=HYPERLINK("x")'
const row = (values: Partial<Record<Column, string | number>>): (string | number | null)[] => {
  const all = { time: Date.now() - 60_000, protocol: 'llm', status: 200, reason: 'Upstream', duration_ms: 500, weight: 1, ...values }
  return columns.map((name) => (all as Partial<Record<Column, string | number>>)[name] ?? null)
}

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'proxyctl-spend-'))
  file = join(directory, 'ledger.db')
  const store = new LedgerStore(file)
  store.add(
    batchOf(
      row({ team: 'red', model: 'large', input_tokens: 1000, output_tokens: 100, cost: 0.1 }),
      row({ team: 'red', model: 'large', input_tokens: 1000, output_tokens: 100, cost: 0.2 }),
      row({ team: 'blue', model: HOSTILE, input_tokens: 10, output_tokens: 1, status: 500 }),
      row({ requested_model: 'evil\u001b[2J,"', cost: 0.01 }),
      row({ team: 'old', model: 'large', cost: 5, time: Date.parse('2020-02-03T04:05:06Z') }),
    ),
  )
  store.close()
})
afterAll(() => rmSync(directory, { recursive: true }))

const servers: Server[] = []
afterEach(() => Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve)))))

async function spend(...args: string[]) {
  let [stdout, stderr] = ['', '']
  const code = await main(['spend', ...args], {
    env: {},
    isTerminal: false,
    readInput: () => Promise.resolve(''),
    write: (text) => (stdout += text),
    writeError: (text) => (stderr += text),
  })
  return { code, stdout, stderr }
}

describe('proxyctl spend', () => {
  test('prints a table with the highest cost first and totals', async () => {
    const { code, stdout, stderr } = await spend('--file', file, '--by', 'team,model')
    expect(stdout.split('\n').map((line) => line.trimEnd())).toEqual([
      'TEAM   MODEL            REQUESTS  ERRORS  INPUT  OUTPUT  COST',
      'red    large            2         0       2000   200     0.3000',
      '-      evil\ufffd[2J,"       1         0       0      0       0.0100',
      'blue   =HYPERLINK("x")  1         1       10     1       0.0000',
      'TOTAL                   4         1       2010   201     0.3100',
      '',
    ])
    expect(stderr).toBe('1 requests used models without a price and are missing in the cost; --by model -o wide shows them\n')
    expect(code).toBe(0)
    expect((await spend('--file', file, '--by', 'team,model', '-o', 'table')).stdout).toBe(stdout)
  })

  test('prints CSV that a spreadsheet does not run', async () => {
    const { stdout } = await spend('--file', file, '--by', 'team,model', '-o', 'csv')
    expect(stdout.split('\n')).toEqual([
      'team,model,requests,errors,inputTokens,outputTokens,cachedTokens,reasoningTokens,cost,unpriced,seconds',
      'red,large,2,0,2000,200,0,0,0.3,0,1',
      ',"evil\u001b[2J,""",1,0,0,0,0,0,0.01,0,0.5',
      `blue,"'=HYPERLINK(""x"")",1,1,10,1,0,0,0,1,0.5`,
      '',
    ])
  })

  test('prints JSON of a time between two dates', async () => {
    const { stdout } = await spend('--file', file, '--by', 'day', '--since', '2020-02-03', '--until', '2020-02-04', '-o', 'json')
    expect(JSON.parse(stdout)).toMatchObject({ by: ['day'], sinceMs: Date.parse('2020-02-03T00:00:00Z'), rows: [{ group: ['2020-02-03'], cost: 5 }] })
    expect((await spend('--file', file, '--since', '2019-01-01', '--until', '2019-01-02T03:04')).stdout).toBe('no requests\n')
  })

  test('reads the management API of a data plane', async () => {
    const urls: (string | undefined)[] = []
    const server = createServer((request, response) => {
      urls.push(request.url)
      const body = { by: ['user'], sinceMs: 1, untilMs: 2, rows: [], isCut: true }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const { code, stdout, stderr } = await spend('--admin', `127.0.0.1:${port}`, '--by', 'user', '--since', '2020-01-01', '--until', '2020-01-02')
    expect([code, stdout, stderr]).toEqual([0, 'no requests\n', 'there are more groups; use fewer dimensions or a shorter time\n'])
    expect(urls).toEqual([`/api/v1/spend?by=user&since=${Date.parse('2020-01-01')}&until=${Date.parse('2020-01-02')}`])
  })

  test('reports a data plane without a ledger', async () => {
    const server = createServer((_, response) => response.writeHead(404).end('{"error":"this data plane keeps no ledger"}'))
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { code, stderr } = await spend('--admin', `127.0.0.1:${(server.address() as AddressInfo).port}`)
    expect([code, stderr]).toEqual([1, 'proxyctl: this data plane keeps no ledger [PX6004]\n'])
  })

  test.each([
    [['--by', 'colour'], 2, /^proxyctl: --by: "colour" is not one of gateway, .*\[PX6001\]\n$/],
    [['--by', 'day,hour,month,user,team,key,model'], 2, /7 dimensions; at most 6/],
    [['--since', 'yesterday'], 2, /--since: "yesterday" is neither a duration such as 7d or 12h, nor a time/],
    [['--since', '1d', '--until', '2d'], 2, /--since is not before --until/],
    [['-o', 'xml'], 2, /"xml" is not one of text, wide, json, yaml, table, csv/],
    [['all'], 2, /spend takes no argument/],
    [['--file', '/nowhere/ledger.db'], 1, /^proxyctl: \/nowhere\/ledger\.db: no such file; .*\[PX6009\]\n$/],
    [['--file', import.meta.filename], 1, /file is not a database/],
  ])('rejects %j', async (args, expected, message) => {
    const { code, stdout, stderr } = await spend(...args)
    expect([code, stdout]).toEqual([expected, ''])
    expect(stderr).toMatch(message)
  })
})

test('commands other than spend print no CSV', async () => {
  let stderr = ''
  const terminal = { env: {}, isTerminal: false, readInput: () => Promise.resolve(''), write: () => undefined }
  expect(await main(['version', '--client', '-o', 'csv'], { ...terminal, writeError: (text) => (stderr += text) })).toBe(2)
  expect(stderr).toMatch(/"csv" is not one of text, wide, json, yaml;/)
})
