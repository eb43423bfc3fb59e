import { createRoute } from '@hono/zod-openapi'
import { bodyLimit } from 'hono/body-limit'
import { CelError, compilePermissive, diagnose, environments, functionDocs, toHost, toJsonText, typeOf, variableDocs, type Program } from '#api/cel/index.ts'
import { evaluateRequest, evaluateResult, expressionCatalog, type EvaluateRequest, type EvaluateResult } from '#api/management/expressions.ts'
import { entropy } from '../../request/expression/program.ts'

import type { ConsoleApp } from './context.ts'
import { failed, json } from './responses.ts'
import { buildSampleContext, SampleError } from './sample.ts'

const MAX_BODY = 1024 * 1024
const MAX_VALUE = 64 * 1024
/** An expression is evaluated repeatedly for at most this time, so that the clock measures it. */
const MEASURE_MS = 2
/** A longer evaluation is not repeated. */
const SLOW_MS = 50
const MAX_EVALUATIONS = 1000
/** Length of a batch, and evaluations in it. */
const BATCH_MS = 0.2
const MAX_BATCH = 50

const evaluateRoute = createRoute({
  method: 'post',
  path: '/api/v1/expressions/evaluate',
  summary: 'Evaluates an expression with the values of a sample request',
  description: 'The budget of an evaluation is that of an expression of a policy. Nothing is sent.',
  middleware: bodyLimit({ maxSize: MAX_BODY, onError: (c) => c.json({ error: 'body: is longer than 1 MiB' }, 413) }),
  request: { body: { required: true, content: { 'application/json': { schema: evaluateRequest } } } },
  responses: {
    200: json(evaluateResult, 'The value, or why there is none.'),
    400: failed('The sample is not valid.'),
    413: failed('The request is too long.'),
  },
})

const catalogRoute = createRoute({
  method: 'get',
  path: '/api/v1/expressions/catalog',
  summary: 'Variables and functions of expressions',
  responses: { 200: json(expressionCatalog, 'With their documentation.') },
})

export function registerExpressions(app: ConsoleApp): void {
  app.openapi(evaluateRoute, (c) => {
    try {
      return c.json(evaluate(c.req.valid('json')), 200)
    } catch (error) {
      if (error instanceof SampleError) return c.json({ error: error.message }, 400)
      throw error
    }
  })
  app.openapi(catalogRoute, (c) =>
    c.json({ variables: variableDocs.map(({ phases, ...doc }) => ({ ...doc, phases: [...phases] })), functions: [...functionDocs] }, 200),
  )
}

function evaluate({ expression, phase, sample }: EvaluateRequest): EvaluateResult {
  const context = buildSampleContext(sample)
  const { program, problems } = compilePermissive(expression, { ...environments[phase], entropy })
  const { value, evaluations, microseconds } = measure(program, context)
  const failure = value instanceof CelError ? diagnose(expression, value.offset ?? 0, value.message) : null
  const text = failure === null ? toJsonText(value) : undefined
  return {
    problems: [...problems],
    error: failure === null && text === undefined ? diagnose(expression, 0, 'the value is too large to show') : failure,
    value: text?.slice(0, MAX_VALUE) ?? null,
    isTruncated: text !== undefined && text.length > MAX_VALUE,
    type: failure === null ? describeType(value) : null,
    reads: [...program.reads],
    evaluations,
    microseconds,
  }
}

/** Time of an evaluation in the fastest batch: other programs on the machine, and the collector, interrupt some batches, not all. */
function measure(program: Program, context: object): { value: unknown; evaluations: number; microseconds: number } {
  const firstMs = performance.now()
  const value = program.eval(context)
  let fastestMs = performance.now() - firstMs
  let evaluations = 1
  // The first evaluation includes the compilation of the code that it runs, unless it is so long that this does not matter.
  if (fastestMs >= SLOW_MS) return { value, evaluations, microseconds: fastestMs * 1000 }
  const startMs = performance.now()
  let elapsedMs = 0
  while (elapsedMs < MEASURE_MS && evaluations < MAX_EVALUATIONS) {
    const size = Math.max(1, Math.min(MAX_BATCH, Math.floor(BATCH_MS / fastestMs)))
    for (let i = 0; i < size; i++) program.eval(context)
    evaluations += size
    const nowMs = performance.now() - startMs
    fastestMs = Math.min(fastestMs, (nowMs - elapsedMs) / size)
    elapsedMs = nowMs
  }
  return { value, evaluations, microseconds: fastestMs * 1000 }
}

function describeType(value: unknown): string | null {
  const name = toHost(typeOf(value))
  return typeof name === 'string' ? name : null
}
