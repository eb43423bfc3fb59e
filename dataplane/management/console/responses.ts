import { z } from '@hono/zod-openapi'

const failure = z.object({ error: z.string() }).openapi('Failure')

/** A JSON response of a route. */
export const json = <S extends z.ZodType>(schema: S, description: string) => ({ content: { 'application/json': { schema } }, description })

/** A response with field `error`. */
export const failed = (description: string) => json(failure, description)

/** A stream of server-sent events, which OpenAPI 3.1 cannot type. */
export const events = (description: string) => ({ content: { 'text/event-stream': { schema: z.string() } }, description })
