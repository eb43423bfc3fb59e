import { createRoute, z } from '@hono/zod-openapi'
import { spend } from '#api/management/spend.ts'
import { parseDimensions } from '../../store/ledger/columns.ts'
import type { ConsoleApp, ConsoleContext } from './context.ts'
import { failed, json } from './responses.ts'

const DAY_MS = 86_400_000

const readSpend = createRoute({
  method: 'get',
  path: '/api/v1/spend',
  summary: 'Requests, tokens and cost of the ledger by user, team, model and other dimensions',
  description: 'Of the records of this process, or of all processes that share its database. Requests are in the ledger about a second after their end.',
  request: {
    query: z.object({
      by: z
        .string()
        .max(200)
        .default('model')
        .openapi({ description: 'Dimensions, separated by commas, such as `team,model`; at most six. Empty: one row with the totals.' }),
      since: z.coerce.number().int().min(0).optional().openapi({ description: 'Unix time in milliseconds. Default: seven days before `until`.' }),
      until: z.coerce.number().int().min(0).optional().openapi({ description: 'Unix time in milliseconds, exclusive. Default: now.' }),
    }),
  },
  responses: {
    200: json(spend, 'Groups, the highest cost first.'),
    400: failed('A dimension does not exist.'),
    404: failed('The data plane keeps no ledger.'),
    503: failed('The ledger cannot be read.'),
  },
})

export function registerSpend(app: ConsoleApp, { ledger, logging }: ConsoleContext): void {
  app.openapi(readSpend, async (c) => {
    const { by: names, since, until } = c.req.valid('query')
    if (ledger === undefined) return c.json({ error: 'this data plane keeps no ledger; config.ledger of its config file sets one up' }, 404)
    const untilMs = until ?? Date.now() + 1
    const sinceMs = since ?? Math.max(0, untilMs - 7 * DAY_MS)
    let by
    try {
      by = parseDimensions(names)
    } catch (error) {
      return c.json({ error: `by: ${(error as Error).message}` }, 400)
    }
    try {
      return c.json({ by, sinceMs, untilMs, ...(await ledger.spend({ by, sinceMs, untilMs })) }, 200)
    } catch (error) {
      logging.logger('admin').error('admin request failed', { code: 'PX4012', path: c.req.path, error })
      return c.json({ error: 'the ledger cannot be read; the log of the data plane has the cause' }, 503)
    }
  })
}
