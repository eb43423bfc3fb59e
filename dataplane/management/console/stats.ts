import { createRoute, z } from '@hono/zod-openapi'
import { budgetUse } from '#api/management/budgets.ts'
import { llmUsage } from '#api/management/llm.ts'
import { mcpSessions } from '#api/management/mcp.ts'
import { mergeLlmUsage, mergeMcpSessions } from '#api/management/merge.ts'
import { series, stats } from '#api/management/stats.ts'

import { BudgetHistory } from '../../policy/budgets/history.ts'
import { reportBudgets } from '../../policy/budgets/report.ts'
import type { ConsoleApp, ConsoleContext } from './context.ts'
import { events, json } from './responses.ts'
import { streamValues } from './stream.ts'

const INTERVAL_MS = 2000

const readStats = createRoute({
  method: 'get',
  path: '/api/v1/stats',
  summary: 'Requests of each node in the last 10 to 20 seconds',
  responses: { 200: json(stats, 'Nodes without requests are left out.') },
})

const streamStats = createRoute({
  method: 'get',
  path: '/api/v1/stats/stream',
  summary: 'The same every two seconds',
  responses: { 200: events('Events `stats` with a Stats object.') },
})

const readSeries = createRoute({
  method: 'get',
  path: '/api/v1/series',
  summary: 'Requests of a node in the last 15 minutes',
  request: { query: z.object({ key: z.string().max(1000).default('total').openapi({ description: 'As in rows of the stats.' }) }) },
  responses: { 200: json(series, 'A node without a history has points without requests.') },
})

const readLlm = createRoute({
  method: 'get',
  path: '/api/v1/llm',
  summary: 'LLM requests, tokens, cost and errors by model, API key and route in the last 15 minutes',
  description: 'Recorded from the first call until 15 minutes after the last one.',
  responses: { 200: json(llmUsage, 'Sums over all threads. Rows without requests are left out.') },
})

const readBudgets = createRoute({
  method: 'get',
  path: '/api/v1/budgets',
  summary: 'What is left of budgets, by key',
  description:
    'Of the budgets in force, for the keys with requests in the current window. Histories are kept in memory, from the first request for them until the process ends.',
  request: { query: z.object({ history: z.enum(['true', 'false']).default('false').openapi({ description: 'Whether rows have their history.' }) }) },
  responses: { 200: json(budgetUse, 'The highest used part first.') },
})

const listSessions = createRoute({
  method: 'get',
  path: '/api/v1/mcp/sessions',
  summary: 'Sessions of MCP clients',
  description: 'Those in memory. A session that no request used for 30 minutes is left out, but its client can still use it.',
  responses: { 200: json(mcpSessions, 'Session ids are left out: they are credentials.') },
})

export function registerStats(app: ConsoleApp, { live, threads, snapshot }: ConsoleContext): void {
  app.openapi(readStats, async (c) => c.json(await live.stats(), 200))
  app.openapi(streamStats, (c) => streamValues(c, 'stats', INTERVAL_MS, () => live.stats()))
  app.openapi(readLlm, async (c) => c.json(mergeLlmUsage(await threads('llm', undefined), Date.now()), 200))
  const report = async () => reportBudgets(snapshot().policies.values(), await threads('budgets', undefined))
  const history = new BudgetHistory(report)
  app.openapi(readBudgets, async (c) => c.json(await (c.req.valid('query').history === 'true' ? history.read() : report()), 200))
  app.openapi(listSessions, async (c) => {
    const all = await threads('mcpSessions', undefined)
    return c.json(
      mergeMcpSessions(
        all.map((value) => ({ name: '', value })),
        Date.now(),
      ),
      200,
    )
  })
  app.openapi(readSeries, async (c) => c.json(await live.series(c.req.valid('query').key), 200))
}
