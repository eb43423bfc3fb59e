import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { ApiServer } from './apiserver.ts'
import { connectWithCrds, create } from './create.ts'
import { aiRows } from './rows/ai.ts'
import { authenticationRows } from './rows/authentication.ts'
import { backendRows, parametersRows } from './rows/backend.ts'
import { defaultRows } from './rows/defaults.ts'
import { frontendRows } from './rows/frontend.ts'
import { mcpRows } from './rows/mcp.ts'
import type { Row } from './rows/row.ts'
import { targetRows } from './rows/targets.ts'
import { trafficRows } from './rows/traffic.ts'

let server: ApiServer

beforeAll(async () => {
  server = await connectWithCrds()
})
afterAll(() => server.close())

async function check([, manifest, field, gist]: Row): Promise<void> {
  const { status, causes } = await create(server, manifest)
  if (field === undefined || gist === undefined) {
    expect(causes).toEqual([])
    expect(status).toBe(201)
    return
  }
  expect(status).toBe(gist.startsWith('unknown field') ? 400 : 422)
  // The cause that was expected must be the reason: each rejected row is wrong in one way only.
  expect(causes.filter((cause) => cause.field === field || field === '').map(({ message }) => message)).toContainEqual(expect.stringContaining(gist))
}

const tables: Readonly<Record<string, readonly Row[]>> = {
  targets: targetRows,
  traffic: trafficRows,
  authentication: authenticationRows,
  frontend: frontendRows,
  backend: backendRows,
  ai: aiRows,
  mcp: mcpRows,
  parameters: parametersRows,
}

describe.each(Object.entries(tables))('%s', (_, rows) => {
  test('no two rows say the same', () => {
    const sentences = rows.map((row) => row[0])
    expect(
      sentences.filter((sentence, index) => sentences.indexOf(sentence) !== index && rows[index]?.length === rows[sentences.indexOf(sentence)]?.length),
    ).toEqual([])
  })
  const named = rows.map((row): [string, Row] => [`${row.length === 2 ? 'accepts' : 'rejects'} ${row[0]}`, row])
  test.each(named)('%s', (_sentence, row) => check(row))
})

test.each(defaultRows)('defaults: %s', async (_, manifest, expected) => {
  const { causes, object } = await create(server, manifest)
  expect(causes).toEqual([])
  expect(object['spec']).toMatchObject(expected)
})

test('there are rows enough', () => {
  const rows = Object.values(tables).flat()
  const rejected = rows.filter((row) => row.length === 4).length
  console.info(`${rows.length + defaultRows.length} rows: ${rows.length - rejected} accepted, ${rejected} rejected, ${defaultRows.length} defaults`)
  expect(rows.length).toBeGreaterThanOrEqual(150)
})
