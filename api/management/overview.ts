import { z } from '@hono/zod-openapi'
import { stats } from './stats.ts'

const certificate = z
  .object({
    secret: z.string().openapi({ description: 'Key of the Secret message.' }),
    subject: z.string(),
    names: z.array(z.string()),
    notAfterMs: z.number().openapi({ description: 'Unix time in milliseconds.' }),
  })
  .openapi('Certificate')

const listenerNode = z
  .object({
    key: z.string(),
    gateway: z.string().openapi({ description: '`<namespace>/<name>`.' }),
    name: z.string(),
    port: z.number(),
    protocol: z.enum(['HTTP', 'HTTPS', 'TLS', 'TCP']),
    hostname: z.string().nullable(),
    certificates: z.array(certificate),
  })
  .openapi('ListenerNode')

const routeNode = z
  .object({
    key: z.string().openapi({ description: '`<kind> <namespace>/<name>`.', example: 'HTTPRoute default/shop' }),
    kind: z.enum(['HTTPRoute', 'GRPCRoute', 'TCPRoute', 'TLSRoute']),
    namespace: z.string(),
    name: z.string(),
    listeners: z.array(z.string()),
    hostnames: z.array(z.string()),
    origin: z.string().nullable().openapi({
      description:
        'Field of the short form of a config file that the route is made from: `llm.models.gpt-4o`, `llm` for lists of models and errors, `mcp`. Null for others.',
    }),
    rules: z.number(),
    backends: z.array(z.string()).openapi({ description: 'Keys of backends.' }),
  })
  .openapi('RouteNode')

const endpointNode = z
  .object({
    address: z.string().openapi({ description: '`host:port`.' }),
    health: z.number().nullable().openapi({ description: 'From 0 to 1; null if no request was sent to it yet.' }),
    evictedForMs: z.number().nullable().openapi({ description: 'Time until the endpoint receives requests again; null if it is not evicted.' }),
    evictedBecause: z
      .string()
      .nullable()
      .openapi({ description: 'Why the endpoint is evicted.', example: '3 unhealthy calls in a row, the last with status 503' }),
    failedCheck: z.string().nullable().openapi({ description: 'Why checks of the endpoint fail; null if they pass or there are none.', example: 'status 503' }),
    latencyMs: z.number().nullable().openapi({ description: 'Moving average of the time to the response head.' }),
    pending: z.number().openapi({ description: 'Requests in flight.' }),
    draining: z.boolean(),
    zone: z.string().nullable(),
  })
  .openapi('EndpointNode')

const modelTargets = z.array(
  z.object({
    target: z.string().openapi({ description: 'Backend, and the model that it is asked for.', example: 'default/openai gpt-5' }),
    weight: z.number(),
  }),
)

const modelNode = z
  .object({
    name: z.string(),
    visibility: z.enum(['Public', 'Internal']),
    by: z.enum(['Weight', 'LeastLatency', 'LeastCost', 'LeastBusy']),
    sticky: z.string().nullable().openapi({ description: 'CEL expression.' }),
    rules: z.array(
      z.object({
        when: z.string().nullable().openapi({ description: 'CEL expression; null: all requests.' }),
        to: modelTargets,
        rollout: z.string().nullable().openapi({ description: 'Phase and step of the rollout of the rule; the weights are those of the step.' }),
      }),
    ),
    fallback: z.array(z.object({ on: z.array(z.string()), to: modelTargets })),
    shadow: z
      .object({ to: z.string(), percent: z.number(), budget: z.string(), judge: z.string().nullable() })
      .nullable()
      .openapi({ description: 'Where copies of chats go, to be compared.' }),
  })
  .openapi('ModelNode')

const backendNode = z
  .object({
    key: z.string().openapi({ description: 'As in field `backend` of requests and in `backend <key>` of the stats.', example: 'default/shop:80' }),
    kind: z.enum(['service', 'static', 'dynamic', 'ai', 'mcp', 'agentRuntime', 'a2a', 'invalid']),
    endpoints: z.array(endpointNode).openapi({ description: 'Of a backend with models, those of all its targets.' }),
    models: z.array(modelNode).openapi({ description: 'Models of an LLM backend with `ai.models`; empty for others.' }),
  })
  .openapi('BackendNode')

const problem = z
  .object({
    severity: z.enum(['error', 'warning']),
    code: z.string().nullable().openapi({ description: 'Code of the message, documented in docs/reference/messages.', example: 'PX4010' }),
    message: z.string(),
    object: z.string().nullable().openapi({
      description:
        'The node that it is about: `listener <key>`, `route <kind> <namespace>/<name>`, `backend <key>`, `budget <namespace>/<policy> <budget>`, `config` or `policy …`.',
    }),
    pod: z.string().nullable().openapi({ description: 'Set by `proxyctl console` for problems of one pod.' }),
  })
  .openapi('Problem')

const replica = z.object({ name: z.string(), configVersion: z.number(), version: z.string(), startedAtMs: z.number(), workers: z.number() }).openapi('Replica')

export const overview = z
  .object({
    timeMs: z.number(),
    replicas: z.array(replica).openapi({ description: 'The processes whose numbers these are: one, or with `proxyctl console` each pod.' }),
    gateways: z.array(z.object({ key: z.string().openapi({ description: '`<namespace>/<name>`.' }) })),
    listeners: z.array(listenerNode),
    routes: z.array(routeNode),
    backends: z.array(backendNode),
    ledger: z.boolean().optional().openapi({ description: 'Whether requests are recorded, so that there are reports of the spend. Absent in old versions.' }),
    problems: z.array(problem).openapi({ description: 'Errors first.' }),
    stats,
  })
  .openapi('Overview')

export type Overview = z.infer<typeof overview>
export type Problem = z.infer<typeof problem>
export type BackendNode = z.infer<typeof backendNode>
export type ModelNode = z.infer<typeof modelNode>
export type EndpointNode = z.infer<typeof endpointNode>
