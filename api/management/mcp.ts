import { z } from '@hono/zod-openapi'

const mcpSession = z
  .object({
    id: z.string().nullable().openapi({ description: 'Digest of the session id, as in logs. It opens no session. Null for sessions without an id.' }),
    backend: z.string().openapi({ description: '`<namespace>/<name>` of the ProxyBackend.' }),
    kind: z
      .enum(['session', 'stream', 'shared'])
      .openapi({ description: '`stream`: an HTTP+SSE client. `shared`: sessions with servers that requests of one client of revision 2026-07-28 share.' }),
    revision: z.string().nullable().openapi({ description: 'Protocol revision of its last message.', example: '2025-06-18' }),
    client: z
      .object({ name: z.string(), version: z.string() })
      .nullable()
      .openapi({ description: 'What the client said about itself, shortened. Null if the process that handled `initialize` is gone.' }),
    ageMs: z.number().nullable().openapi({ description: 'Since `initialize`; null if the process that handled it is gone.' }),
    idleMs: z.number().openapi({ description: 'Since the last request.' }),
    open: z.number().openapi({ description: 'Requests and streams that are open.' }),
    isBound: z.boolean().openapi({ description: 'Whether a policy authenticated the client, so that nobody else can use the session.' }),
    targets: z.array(z.object({ name: z.string(), isMissing: z.boolean().openapi({ description: 'The target was not available at `initialize`.' }) })),
    pods: z.array(z.string()).openapi({ description: 'The replicas that know it. Set by `proxyctl console`.' }),
  })
  .openapi('McpSession')

export const mcpSessions = z
  .object({
    timeMs: z.number(),
    sessions: z.array(mcpSession).openapi({ description: 'The most recently used first, at most 200.' }),
    total: z.number().openapi({ description: 'Sessions in memory. A session that two threads or replicas handle counts twice if it is not listed.' }),
  })
  .openapi('McpSessions')

export type McpSession = z.infer<typeof mcpSession>
export type McpSessions = z.infer<typeof mcpSessions>
