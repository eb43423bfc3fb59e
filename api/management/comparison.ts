import { z } from '@hono/zod-openapi'

const side = z
  .object({
    target: z.string().openapi({ description: 'Backend, and the model that it was asked for.', example: 'default/openai gpt-5' }),
    model: z.string().openapi({ description: 'Model of the response, else of the request.' }),
    durationMs: z.number(),
    firstTokenMs: z.number().nullable().openapi({ description: 'Of streams.' }),
    inputTokens: z.number().nullable(),
    outputTokens: z.number().nullable(),
    cost: z.number().nullable().openapi({ description: 'US dollars; null: the model has no price.' }),
    stop: z.string().nullable().openapi({ description: 'Why the model stopped.', example: 'maxTokens' }),
    json: z.boolean().nullable().openapi({ description: 'Whether the text is JSON; null: the request asked for none, or tools were called.' }),
  })
  .openapi('ComparisonSide')

const verdicts = ['Original', 'Copy', 'Tie', 'Inconsistent', 'Invalid'] as const

/** Verdict of the judge of a comparison. */
export type Verdict = (typeof verdicts)[number]

const comparison = z
  .object({
    timeMs: z.number().openapi({ description: 'Unix time in milliseconds at which the copy was sent.' }),
    backend: z.string().openapi({ description: '`<namespace>/<name>` of the backend with the model.' }),
    model: z.string().openapi({ description: 'Name of the model that was copied, as configured.' }),
    requestId: z.string().nullable().openapi({ description: '`x-request-id` of the client request.' }),
    original: side,
    copy: side,
    error: z.string().nullable().openapi({ description: 'Why the copy failed: a status, or a reason such as Timeout; null: it did not.' }),
    similarity: z.number().nullable().openapi({ description: 'Of the texts, by their n-grams, from 0 to 1.' }),
    tools: z.enum(['none', 'arguments', 'names']).nullable().openapi({ description: 'How calls of tools differ; null: neither response has calls.' }),
    sameMembers: z.boolean().nullable().openapi({ description: 'Whether JSON texts have the same members at the top.' }),
    verdict: z.enum(verdicts).nullable().openapi({ description: 'Verdict of the judge; null: there is none.' }),
    judgeCost: z.number().nullable().openapi({ description: 'US dollars.' }),
    texts: z
      .object({ request: z.string(), original: z.string(), copy: z.string() })
      .nullable()
      .openapi({ description: 'What was asked and both responses, if the ledger stores bodies; secrets of the config are redacted.' }),
  })
  .openapi('Comparison')

export type ComparisonSide = z.infer<typeof side>
/** The response of a client, and that of the copy of its request. */
export type Comparison = z.infer<typeof comparison>
