import { z } from '@hono/zod-openapi'

const llmRow = z
  .object({
    model: z.string().openapi({ description: 'Model of the response, else of the request; `unknown`; `other` beyond the limit of rows.' }),
    provider: z.string(),
    key: z.string().nullable().openapi({ description: 'Name of the API key: that of its entry in the Secret. Null without an API key.' }),
    route: z.string().openapi({ description: '`<namespace>/<name>`.' }),
    requests: z.number(),
    inputTokens: z.number(),
    outputTokens: z.number(),
    cachedTokens: z.number().openapi({ description: 'Input tokens that the provider read from its cache.' }),
    cost: z.number().openapi({ description: 'In the currency of the price table; 0 without prices.' }),
    streams: z.number().openapi({ description: 'Streamed responses with a first token.' }),
    firstTokenSeconds: z.number().openapi({ description: 'Sum of the times to the first token of these streams.' }),
    generationSeconds: z.number().openapi({ description: 'Sum of the times from the first token to the end of streams that report their tokens.' }),
    generatedTokens: z.number().openapi({ description: 'Output tokens of these streams; divided by `generationSeconds`: tokens per second.' }),
    rateLimited: z.number().openapi({ description: 'Status 429, of the gateway or the provider.' }),
    clientErrors: z.number().openapi({ description: 'Other statuses from 400 to 499.' }),
    serverErrors: z.number().openapi({ description: 'Statuses from 500, except timeouts.' }),
    timeouts: z.number().openapi({ description: 'Requests that a timeout ended.' }),
    aborted: z.number().openapi({ description: 'No response, or a response that broke off.' }),
  })
  .openapi('LlmRow')

export const llmUsage = z
  .object({
    timeMs: z.number(),
    sinceMs: z.number().openapi({ description: 'Start of the numbers, Unix time in milliseconds: when they were first read, at most 15 minutes ago.' }),
    rows: z.array(llmRow).openapi({ description: 'At most 500 for each thread that handles traffic.' }),
  })
  .openapi('LlmUsage')

export type LlmUsage = z.infer<typeof llmUsage>
export type LlmRow = z.infer<typeof llmRow>
