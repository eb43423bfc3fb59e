import { z } from '@hono/zod-openapi'

const header = z.tuple([z.string(), z.string()])

const requestRecord = z
  .object({
    id: z.string(),
    timeMs: z.number().openapi({ description: 'Receipt of the request head, Unix time in milliseconds.' }),
    method: z.string(),
    host: z.string(),
    path: z.string().openapi({ description: 'With query.' }),
    version: z.string().openapi({ example: 'HTTP/1.1' }),
    status: z.number().openapi({ description: '0: no response was sent.' }),
    protocol: z.string().openapi({ description: '`http`, `a2a`, `mcp` or `llm`.' }),
    durationMs: z.number(),
    gateway: z.string().nullable(),
    listener: z.string().nullable(),
    route: z.string().nullable().openapi({ description: '`<namespace>/<name>`.' }),
    rule: z.string().nullable(),
    backend: z.string().nullable(),
    endpoint: z.string().nullable(),
    client: z.string().openapi({ description: 'Address of the client.' }),
    reason: z.string().openapi({ description: 'As field `reason` of the access log; `Upstream` if the upstream responded.' }),
    error: z.string().nullable(),
    retries: z.number(),
    requestBytes: z.number(),
    responseBytes: z.number(),
    timings: z
      .object({
        upstreamMs: z.number().nullable().openapi({ description: 'Start of the upstream call.' }),
        responseHeadMs: z.number().nullable().openapi({ description: 'Response head of the upstream.' }),
        answeredMs: z.number().nullable().openapi({ description: 'Response head for the client.' }),
      })
      .openapi({ description: 'Milliseconds since the receipt of the request.' }),
    requestHeaders: z.array(header).openapi({ description: 'Values of headers with credentials are redacted.' }),
    responseHeaders: z.array(header),
    fields: z.record(z.string(), z.union([z.string(), z.number()])).openapi({ description: 'Fields that policies and services add to the access log.' }),
    pod: z.string().nullable().openapi({ description: 'Set by `proxyctl console`.' }),
  })
  .openapi('RequestRecord')

export const requestBatch = z
  .object({
    records: z.array(requestRecord).openapi({ description: 'Oldest first.' }),
    seen: z.number().openapi({ description: 'Requests that finished since the last batch.' }),
    skipped: z.number().openapi({ description: 'Those that were not compared with the filter, or not kept, because there were too many.' }),
  })
  .openapi('RequestBatch')

export const tryRequest = z
  .object({
    listener: z.string().openapi({ description: 'Key of an HTTP or HTTPS listener.' }),
    method: z.string().default('GET'),
    host: z.string().openapi({ description: 'Host header, and SNI for HTTPS.', example: 'shop.example' }),
    path: z.string().default('/').openapi({ description: 'With query.' }),
    headers: z.array(header).default([]),
    body: z.string().default('').openapi({ description: 'UTF-8 text, at most 1 MiB.' }),
    timeoutMs: z.number().int().min(100).max(60_000).default(15_000),
    maxResponseBytes: z
      .number()
      .int()
      .min(1024)
      .max(2 * 1024 * 1024)
      .default(256 * 1024)
      .openapi({ description: 'Longer bodies are cut.' }),
  })
  .openapi('TryRequest')

const traceStep = z
  .object({
    atMs: z.number().openapi({ description: 'Milliseconds since the request was received.' }),
    kind: z.enum(['listener', 'route', 'policy', 'expression', 'upstream', 'answer', 'item', 'model']).openapi({
      description:
        '`item`: an MCP tool, prompt or resource that the client does not see; `detail.hidden` says why. `model`: the choice of a target for an LLM model; other members of `detail` are targets that were not chosen, with reasons.',
    }),
    name: z.string().openapi({ description: 'Name of the policy, text of the expression, address of the endpoint, kind and name of the item.' }),
    detail: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  })
  .openapi('TraceStep')

export const tryResult = z
  .object({
    response: z
      .object({
        status: z.number(),
        headers: z.array(header),
        body: z.string(),
        encoding: z.enum(['utf8', 'base64']),
        isTruncated: z.boolean().openapi({ description: 'The body was longer than `maxResponseBytes`, or did not end in time.' }),
        headMs: z.number(),
        durationMs: z.number(),
      })
      .nullable(),
    error: z.string().nullable().openapi({ description: 'Why there is no response, such as a connection that the gateway closed.' }),
    trace: z
      .object({ status: z.number(), reason: z.string().nullable(), error: z.string().nullable(), steps: z.array(traceStep) })
      .nullable()
      .openapi({ description: 'Null if the request did not reach a listener.' }),
  })
  .openapi('TryResult')

export type RequestRecord = z.infer<typeof requestRecord>
export type RequestBatch = z.infer<typeof requestBatch>
export type TryRequest = z.infer<typeof tryRequest>
export type TryResult = z.infer<typeof tryResult>
