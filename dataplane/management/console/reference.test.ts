import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { createConsoleApp } from './app.ts'
import type { ConsoleContext } from './context.ts'

test('docs/reference/management-api/README.md lists routes of the API with their summaries', async () => {
  const app = createConsoleApp({ version: '1' } as ConsoleContext)
  const { paths } = (await (await app.request('/openapi.json')).json()) as { paths: Readonly<Record<string, Readonly<Record<string, { summary: string }>>>> }
  const page = await readFile(join(import.meta.dirname, '../../../docs/reference/management-api/README.md'), 'utf8')
  const rows = [...page.matchAll(/^\| `([A-Z]+) (\S+)` \| (.*) \|$/gm)]
  expect(rows.length).toBeGreaterThan(10)
  for (const [, method = '', path = '', summary] of rows) expect([path, paths[path]?.[method.toLowerCase()]?.summary]).toEqual([path, summary])
})
