import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Comparison } from '#api/management/comparison.ts'
import { columns, type Column } from '../../../dataplane/store/ledger/columns.ts'
import { LedgerStore } from '../../../dataplane/store/ledger/sqlite-store.ts'
import { batchOf } from '../../../dataplane/store/ledger/testing.ts'
import { main } from '../proxyctl.ts'

let directory: string
let file: string
const HOSTILE = 'evil\u001b[2J|x'

const side = (target: string, more: object = {}) => ({
  target,
  model: 'm',
  durationMs: 100,
  firstTokenMs: null,
  inputTokens: 10,
  outputTokens: 20,
  cost: 0.01,
  stop: 'end',
  json: null,
  ...more,
})
const comparison = (more: Partial<Comparison> = {}): Comparison => ({
  timeMs: 0,
  backend: 'ns/models',
  model: 'assistant',
  requestId: null,
  error: null,
  similarity: 1,
  tools: null,
  sameMembers: null,
  verdict: null,
  judgeCost: null,
  texts: null,
  original: side('ns/a m'),
  copy: side('ns/b n', { durationMs: 50, cost: 0.005 }),
  ...more,
})
const row = (body: object, age = 60_000): (string | number | null)[] => {
  const values: Partial<Record<Column, string | number>> = {
    time: Date.now() - age,
    protocol: 'llm',
    operation: 'shadow',
    target: 'assistant',
    status: 200,
    reason: 'Upstream',
    weight: 1,
    response_body: JSON.stringify(body),
  }
  return columns.map((name) => values[name] ?? null)
}

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'proxyctl-compare-'))
  file = join(directory, 'ledger.db')
  const store = new LedgerStore(file)
  const failed = comparison({ requestId: HOSTILE, error: HOSTILE })
  store.add(
    batchOf(...Array.from({ length: 20 }, () => row(comparison())), row(failed), row({ choices: [] }), row(comparison({ error: 'old' }), 40 * 86_400_000)),
  )
  store.close()
})
afterAll(() => rmSync(directory, { recursive: true }))

async function compare(...args: string[]) {
  let [stdout, stderr] = ['', '']
  const code = await main(['models', 'compare', ...args], {
    env: {},
    isTerminal: false,
    readInput: () => Promise.resolve(''),
    write: (text) => (stdout += text),
    writeError: (text) => (stderr += text),
  })
  return { code, stdout, stderr }
}

describe('proxyctl models compare', () => {
  test('prints a report in Markdown, whose cells no text of a client can end', async () => {
    const { code, stdout } = await compare('assistant', '--file', file)
    expect(code).toBe(0)
    expect(stdout).toContain('## assistant: ns/a m and ns/b n')
    expect(stdout).toContain('21 comparisons in ns/models; 1 copies failed (4.8 % (')
    expect(stdout).toMatch(/^\| latency ms, p50 +\| 100 +\| 50 +\| 0\.50 \(0\.50 to 0\.50\) \|$/m)
    expect(stdout).toMatch(/^\| evil\ufffd\[2J\\\|x +\| +evil/m)
    expect(stdout).not.toContain('\u001b')
    expect((await compare('assistant', '--file', file, '-o', 'md')).stdout).toBe(stdout)
  })

  test('prints the numbers as JSON, of the time that is asked for', async () => {
    const read = async (...args: string[]) =>
      JSON.parse((await compare('assistant', '--file', file, '-o', 'json', ...args)).stdout) as { pairs: { comparisons: number; ratios: object }[] }
    expect((await read()).pairs).toMatchObject([{ comparisons: 21, ratios: { cost: { value: 0.5 } } }])
    expect((await read('--since', '60d')).pairs).toMatchObject([{ comparisons: 22 }])
  })

  test.each<[string, string[], RegExp]>([
    ['no model', [], /models compare needs NAME/],
    ['no file', ['assistant'], /--file must name the file/],
    ['a file that does not exist', ['assistant', '--file', '/nowhere/ledger.db'], /no such file; --file names/],
  ])('says what is wrong with %s', async (_, args, message) => {
    const { code, stderr } = await compare(...args)
    expect(code).not.toBe(0)
    expect(stderr).toMatch(message)
  })

  test('says that a model has no comparisons', async () => {
    expect((await compare('other', '--file', file)).stdout).toBe('no comparisons\n')
  })
})
