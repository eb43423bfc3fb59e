import { z } from '@hono/zod-openapi'

const phase = z.enum(['network', 'request', 'backend', 'llm', 'response', 'log', 'resource', 'rollout']).openapi({
  description: 'Where the expression is used: it decides which variables there are.',
})
const header = z.tuple([z.string().max(1000), z.string().max(65_536)])

const sample = z
  .object({
    method: z.string().max(100).default('GET'),
    url: z
      .string()
      .max(16_384)
      .default('http://localhost/')
      .openapi({ description: 'Scheme, host, path and query.', example: 'https://shop.example/cart?item=7' }),
    version: z.string().max(20).default('HTTP/1.1'),
    headers: z.array(header).max(200).default([]),
    body: z.string().default('').openapi({ description: 'UTF-8 text.' }),
    source: z
      .object({ address: z.string().max(100).default('127.0.0.1'), port: z.number().int().min(0).max(65_535).default(0) })
      .default({ address: '127.0.0.1', port: 0 }),
    response: z
      .object({ code: z.number().int().min(0).max(999), headers: z.array(header).max(200).default([]), body: z.string().default('') })
      .nullable()
      .default(null),
    variables: z
      .record(z.string(), z.unknown())
      .default({})
      .openapi({ description: 'Other variables, such as `jwt`, as JSON.', example: { jwt: { sub: 'alice' } } }),
  })
  .openapi('ExpressionSample')

export const evaluateRequest = z
  .object({
    expression: z.string().max(16_384),
    phase: phase.default('request'),
    sample: sample.prefault({}),
  })
  .openapi('EvaluateRequest')

const problem = z.object({
  message: z.string(),
  offset: z.number().openapi({ description: 'Into the expression, in UTF-16 units.' }),
  line: z.number(),
  column: z.number(),
})

export const evaluateResult = z
  .object({
    problems: z.array(problem).openapi({ description: 'Why the expression does not compile; it may still have a value.' }),
    error: problem.nullable().openapi({ description: 'Why the evaluation failed.' }),
    value: z.string().nullable().openapi({ description: 'As JSON; null if the evaluation failed.' }),
    isTruncated: z.boolean().openapi({ description: 'The value is longer than 64 KiB of JSON.' }),
    type: z.string().nullable(),
    reads: z.array(z.string()).openapi({ description: 'Variables and members that it may read.' }),
    evaluations: z.number(),
    microseconds: z.number().openapi({ description: 'Time of one evaluation, in the fastest batch.' }),
  })
  .openapi('EvaluateResult')

export const expressionCatalog = z
  .object({
    variables: z.array(z.object({ name: z.string(), type: z.string(), description: z.string(), phases: z.array(phase) })),
    functions: z.array(z.object({ name: z.string(), isMethod: z.boolean(), signature: z.string(), description: z.string() })),
  })
  .openapi('ExpressionCatalog')

export type EvaluateRequest = z.infer<typeof evaluateRequest>
export type ExpressionSample = z.infer<typeof sample>
export type EvaluateResult = z.infer<typeof evaluateResult>
export type ExpressionCatalog = z.infer<typeof expressionCatalog>
