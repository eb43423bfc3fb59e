import { CelError, Secret, type Value } from '#api/cel/index.ts'
import { REDACTED } from '#api/names.ts'

/** What happened to a traced request. `atMs`: milliseconds since its receipt. */
export interface TraceStep {
  readonly atMs: number
  /**
   * `listener` and `route`: what was chosen. `policy`: its request side begins. `expression`: one was evaluated. `upstream`: an attempt
   * on an endpoint begins. `answer`: the head of the answer is there.
   */
  readonly kind: 'listener' | 'route' | 'policy' | 'expression' | 'upstream' | 'answer'
  /** Name of the policy, text of the expression, address of the endpoint. */
  readonly name: string
  /** How it went. Holds no header value, no body and no result of an expression but booleans and numbers. */
  detail?: Readonly<Record<string, string | number | boolean>>
}

/** The steps of one request, in order. */
export class RequestTrace {
  readonly steps: TraceStep[] = []
  readonly #startedAtMs: number

  constructor(startedAtMs: number) {
    this.#startedAtMs = startedAtMs
  }

  /** Adds a step; its `detail` may be filled in once it is known. */
  add(kind: TraceStep['kind'], name: string, detail?: TraceStep['detail']): TraceStep {
    const step: TraceStep = { atMs: performance.now() - this.#startedAtMs, kind, name, ...(detail && { detail }) }
    this.steps.push(step)
    return step
  }

  addExpression(source: string, result: Value): void {
    this.add('expression', source, { result: describeResult(result) })
  }
}

/** A result without its content: whoever traces a request must not see more of it than its log. */
function describeResult(result: Value): string | number | boolean {
  if (result instanceof CelError) return `error: ${result.message}`
  if (typeof result === 'boolean' || typeof result === 'number') return result
  if (typeof result === 'bigint') return String(result)
  if (result === null || result === undefined) return 'null'
  if (result instanceof Secret) return REDACTED
  if (typeof result === 'string') return `string of ${result.length}`
  return Array.isArray(result) ? `list of ${result.length}` : 'object'
}
