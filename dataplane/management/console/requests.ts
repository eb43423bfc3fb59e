import { createRoute, z } from '@hono/zod-openapi'
import { randomUUID } from 'node:crypto'
import { mergeBatches } from '#api/management/merge.ts'
import type { RequestBatch } from '#api/management/requests.ts'
import { requestBatch } from '#api/management/requests.ts'
import { findProblem } from '../../request/expression/program.ts'

import type { ConsoleApp, ConsoleContext } from './context.ts'
import { events, failed, json } from './responses.ts'
import { streamValues } from './stream.ts'
import type { CallThreads } from './thread.ts'

const INTERVAL_MS = 500
/** Requests of a batch of the stream: more cannot be read, and cost the gateway and the page. */
const STREAM_LIMIT = 30
/** Default number of requests of a response. */
const LIMIT = 100
const MAX_STREAMS = 8

const query = z.object({
  filter: z.string().max(4096).optional().openapi({ description: 'CEL expression with the variables of the access log.', example: 'response.code >= 500' }),
})

const readRequests = createRoute({
  method: 'get',
  path: '/api/v1/requests',
  summary: 'Requests that finished since the last call with the same tail',
  description: 'The first call starts the tail; it ends when it is not called for five seconds. Requests are recorded only while a tail is open.',
  request: { query: query.extend({ tail: z.string().min(1).max(100), limit: z.coerce.number().int().min(1).max(500).default(LIMIT) }) },
  responses: {
    200: json(requestBatch, 'A sample, if there are more than `limit`.'),
    400: failed('The filter is invalid.'),
    429: failed('Too many tails are open.'),
  },
})

const streamRequests = createRoute({
  method: 'get',
  path: '/api/v1/requests/stream',
  summary: 'Live tail of requests',
  request: { query },
  responses: {
    200: events('Events `requests` with a RequestBatch, twice a second.'),
    400: failed('The filter is invalid.'),
    429: failed('Too many streams are open.'),
  },
})

export function registerRequests(app: ConsoleApp, { threads }: ConsoleContext): void {
  let streams = 0
  app.openapi(readRequests, async (c) => {
    const { filter, tail, limit } = c.req.valid('query')
    const problem = problemOf(filter)
    if (problem !== undefined) return c.json({ error: problem }, 400)
    try {
      return c.json(await readAll(threads, tail, filter, limit), 200)
    } catch (error) {
      if (error instanceof RangeError) return c.json({ error: error.message }, 429)
      throw error
    }
  })
  app.openapi(streamRequests, (c) => {
    const { filter } = c.req.valid('query')
    const problem = problemOf(filter)
    if (problem !== undefined) return c.json({ error: problem }, 400)
    if (streams >= MAX_STREAMS) return c.json({ error: `${MAX_STREAMS} streams of requests are open already: close one of them` }, 429)
    streams++
    const tail = randomUUID()
    return streamValues(
      c,
      'requests',
      INTERVAL_MS,
      () => readAll(threads, tail, filter, STREAM_LIMIT),
      () => streams--,
    )
  })
}

function problemOf(filter: string | undefined): string | undefined {
  const problem = filter === undefined || filter === '' ? undefined : findProblem(filter, 'log')
  return problem && `filter: ${problem}`
}

/** The batches of all threads as one. */
async function readAll(threads: CallThreads, tail: string, filter: string | undefined, limit: number): Promise<RequestBatch> {
  const batches = await threads('tail', { tail, filter, limit })
  return mergeBatches(
    batches.map((value) => ({ name: '', value })),
    limit,
  )
}
