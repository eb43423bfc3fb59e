import { createRoute, z } from '@hono/zod-openapi'
import { series, stats } from '#api/management/stats.ts'

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

export function registerStats(app: ConsoleApp, { live }: ConsoleContext): void {
  app.openapi(readStats, async (c) => c.json(await live.stats(), 200))
  app.openapi(streamStats, (c) => streamValues(c, 'stats', INTERVAL_MS, () => live.stats()))
  app.openapi(readSeries, (c) => c.json(live.series(c.req.valid('query').key), 200))
}
