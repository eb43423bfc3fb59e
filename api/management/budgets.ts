import { z } from '@hono/zod-openapi'

const budgetRow = z
  .object({
    policy: z.string().openapi({ description: '`<namespace>/<name>` of the ProxyPolicy.' }),
    budget: z.string(),
    key: z
      .string()
      .nullable()
      .openapi({ description: 'Value of the key; null for a budget without one. `sha256:` and a digest for long keys, and for keys made of credentials.' }),
    unit: z.enum(['usd', 'tokens', 'requests']),
    window: z.string().openapi({ example: 'Month' }),
    limit: z.number(),
    used: z.number().openapi({ description: 'Reservations of requests in flight included. Can exceed the limit.' }),
    left: z.number(),
    windowEndMs: z.number().openapi({ description: 'Unix time in milliseconds. A rolling window gets a part back before.' }),
    isNearEnd: z.boolean().openapi({ description: 'Whether the highest percentage of `alertAt` is used, or 90 % without one.' }),
    history: z
      .array(z.object({ timeMs: z.number(), used: z.number() }))
      .optional()
      .openapi({ description: 'Only with `history=true`: what was used at earlier times of the window, the oldest first; at most 120 points.' }),
    pod: z.string().optional().openapi({ description: 'Set by `proxyctl console`: each pod has its own counters.' }),
  })
  .openapi('BudgetRow')

export const budgetUse = z
  .object({
    timeMs: z.number(),
    rows: z.array(budgetRow).openapi({ description: 'The highest used part first: at most 100 keys of a limit, and 500 in all.' }),
    isCut: z.boolean().openapi({ description: 'Whether there are further keys.' }),
  })
  .openapi('BudgetUse')

export type BudgetUse = z.infer<typeof budgetUse>
export type BudgetRow = z.infer<typeof budgetRow>
