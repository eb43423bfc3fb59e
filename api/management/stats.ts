import { z } from '@hono/zod-openapi'

/** Requests of one node of the overview in a window. */
const statsRow = z
  .object({
    key: z.string().openapi({ description: '`total`, `listener <key>`, `route <namespace>/<name>` or `backend <key>`.', example: 'route default/shop' }),
    requests: z.number().openapi({ description: 'Finished requests in the window.' }),
    clientErrors: z.number().openapi({ description: 'Those with a status from 400 to 499.' }),
    serverErrors: z.number().openapi({ description: 'Those with a status from 500, and those without a response.' }),
    requestsPerSecond: z.number(),
    counts: z.array(z.number()).openapi({ description: 'Requests by duration; one number for each of `bounds`, and one for longer requests.' }),
    p50Ms: z.number().nullable(),
    p95Ms: z.number().nullable(),
  })
  .openapi('StatsRow')

export const stats = z
  .object({
    timeMs: z.number().openapi({ description: 'Unix time in milliseconds.' }),
    windowSeconds: z.number().openapi({ description: 'Length of the window, which ends at `timeMs`.' }),
    bounds: z.array(z.number()).openapi({ description: 'Upper bounds of `counts`, seconds.' }),
    rows: z.array(statsRow),
  })
  .openapi('Stats')

const seriesPoint = z
  .object({
    requests: z.number(),
    clientErrors: z.number(),
    serverErrors: z.number(),
    counts: z.array(z.number()),
    p50Ms: z.number().nullable(),
    p95Ms: z.number().nullable(),
  })
  .openapi('SeriesPoint')

export const series = z
  .object({
    key: z.string(),
    endMs: z.number().openapi({ description: 'Unix time in milliseconds at the end of the last point.' }),
    stepSeconds: z.number(),
    bounds: z.array(z.number()),
    points: z.array(seriesPoint).openapi({ description: 'Oldest first; at most 15 minutes.' }),
  })
  .openapi('Series')

export type Stats = z.infer<typeof stats>
export type StatsRow = z.infer<typeof statsRow>
export type Series = z.infer<typeof series>
export type SeriesPoint = z.infer<typeof seriesPoint>
