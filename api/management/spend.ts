import { z } from '@hono/zod-openapi'

const spendRow = z
  .object({
    group: z.array(z.string().nullable()).openapi({ description: 'Values of the dimensions, in the order of `by`. Null: requests without a value.' }),
    requests: z.number().openapi({ description: 'Sampled requests are extrapolated.' }),
    errors: z.number().openapi({ description: 'Requests with a status from 400, or without a response.' }),
    inputTokens: z.number(),
    outputTokens: z.number(),
    cachedTokens: z.number().openapi({ description: 'Input tokens that the provider read from its cache.' }),
    reasoningTokens: z.number(),
    cost: z.number().openapi({ description: 'In the currency of the price table.' }),
    unpriced: z.number().openapi({ description: 'Requests that used tokens of a model without a price; they are missing in `cost`.' }),
    seconds: z.number().openapi({ description: 'Sum of the durations.' }),
  })
  .openapi('SpendRow')

export const spend = z
  .object({
    by: z.array(z.string()).openapi({ description: 'Dimensions of the groups.' }),
    sinceMs: z.number().openapi({ description: 'Unix time in milliseconds.' }),
    untilMs: z.number(),
    rows: z.array(spendRow).openapi({ description: 'The highest cost first.' }),
    store: z.string().optional().openapi({
      description:
        'Identifies a database and the owner of the records. Reports of data planes that share one have the same value, and are not added up. Absent: a store of this process.',
    }),
    isCut: z.boolean().openapi({ description: 'There are more than 10,000 groups; those of the lowest cost are missing.' }),
  })
  .openapi('Spend')

export type Spend = z.infer<typeof spend>
export type SpendRow = z.infer<typeof spendRow>
