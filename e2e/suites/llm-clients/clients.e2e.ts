import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { clients, PAGE, readResults, RESULTS, runClient, type ClientResults } from './clients.ts'
import { startClientGateway, type ClientGateway } from './gateway.ts'
import { renderPage } from './page.ts'

/** UPDATE=1 writes results.json and the page. */
const isUpdate = process.env['UPDATE'] === '1'
const found: Record<string, ClientResults> = {}
let gateway: ClientGateway

beforeAll(async () => {
  gateway = await startClientGateway()
})
afterAll(async () => {
  await gateway?.close()
  if (!isUpdate) return
  const known = { ...readResults(), ...found }
  const results = Object.fromEntries(Object.keys(clients).flatMap((name) => (known[name] === undefined ? [] : [[name, known[name]]])))
  await writeFile(RESULTS, `${JSON.stringify(results, undefined, 2)}\n`)
  await writeFile(PAGE, renderPage(results))
})

test.each(Object.keys(clients))('%s does with each provider what the page of clients and providers says', async (name) => {
  const results = (found[name] = await runClient(name, gateway))
  expect({ violations: gateway.providers.takeViolations() }).toEqual({ violations: [] })
  if (!isUpdate) expect(results).toEqual(readResults()[name])
})
