import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { ApiServer } from './api-server.ts'
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
  test('rows have unique titles', () => {
    const sentences = rows.map((row) => row[0])
    expect(
      sentences.filter((sentence, index) => sentences.indexOf(sentence) !== index && rows[index]?.length === rows[sentences.indexOf(sentence)]?.length),
    ).toEqual([])
  })
  const accepted = rows.filter((row) => row.length === 2)
  const rejected = rows.filter((row) => row.length === 4)

  test.each(accepted)('accepts %s', async (_sentence, manifest) => {
    const { status, causes } = await create(server, manifest)
    expect({ status, causes }).toEqual({ status: 201, causes: [] })
  })
  // Strict decoding returns 400 without a field; other errors are a 422 whose causes contain the field.
  test.each(rejected)('rejects %s', async (_sentence, manifest, field, gist) => {
    const { status, causes } = await create(server, manifest)
    expect(status).toBe(field === '' ? 400 : 422)
    expect(causes).toContainEqual({ field, message: expect.stringContaining(gist) })
  })
})

test.each(defaultRows)('the API server sets defaults: %s', async (_, manifest, expected) => {
  const { causes, object } = await create(server, manifest)
  expect(causes).toEqual([])
  expect(object['spec']).toMatchObject(expected)
})

test('the tables have a minimum number of rows', () => {
  const rows = Object.values(tables).flat()
  const rejected = rows.filter((row) => row.length === 4).length
  console.info(`${rows.length + defaultRows.length} rows: ${rows.length - rejected} accepted, ${rejected} rejected, ${defaultRows.length} defaults`)
  expect(rows.length).toBeGreaterThanOrEqual(150)
})
