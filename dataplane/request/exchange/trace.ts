import { CelError, Secret, type Value } from '#api/cel/index.ts'
import { REDACTED } from '#api/names.ts'

/** One step of a traced request. `atMs`: milliseconds since the request was received. */
export interface TraceStep {
  readonly atMs: number
  /**
   * `listener`, `route`: was selected. `policy`: its request side starts. `expression`: was evaluated. `upstream`: an attempt on an
   * endpoint starts. `answer`: the response head is available. `item`: a tool, prompt or resource that the client may not see or use. `model`: a target of
   * an LLM model was chosen.
   */
  readonly kind: 'listener' | 'route' | 'policy' | 'expression' | 'upstream' | 'answer' | 'item' | 'model'
  /** Name of the policy, text of the expression, address of the endpoint, kind and name of the item. */
  readonly name: string
  /** Result of the step. Contains no header values, bodies, or results of expressions other than booleans and numbers. */
  detail?: Readonly<Record<string, string | number | boolean>>
}

/** Steps that are kept. Lists of MCP servers and bodies of LLMs can cause one for each of their parts. */
const MAX_STEPS = 2000
const MAX_ITEM_NAME = 200

/** The steps of one request, in order. */
export class RequestTrace {
  readonly steps: TraceStep[] = []
  /** Called when the exchange is finished. */
  onFinish: (() => void) | undefined
  readonly #startedAtMs: number

  constructor(startedAtMs: number) {
    this.#startedAtMs = startedAtMs
  }

  /** Adds a step; the caller may set its `detail` later. */
  add(kind: TraceStep['kind'], name: string, detail?: TraceStep['detail']): TraceStep {
    const step: TraceStep = { atMs: performance.now() - this.#startedAtMs, kind, name, ...(detail && { detail }) }
    if (this.steps.length < MAX_STEPS || kind === 'answer') this.steps.push(step)
    return step
  }

  /** Adds an item that the client does not see, with the reason. */
  addHidden({ kind, target, name }: { readonly kind: string; readonly target: string; readonly name: string }, reason: string): void {
    this.add('item', `${kind} ${name.slice(0, MAX_ITEM_NAME)}`, { target, hidden: reason })
  }

  addExpression(source: string, result: Value): void {
    this.add('expression', source, { result: describeResult(result) })
  }
}

/** Describes a result without its content: a trace must not reveal more than the access log. */
function describeResult(result: Value): string | number | boolean {
  if (result instanceof CelError) return `error: ${result.message}`
  if (typeof result === 'boolean' || typeof result === 'number') return result
  if (typeof result === 'bigint') return String(result)
  if (result === null || result === undefined) return 'null'
  if (result instanceof Secret) return REDACTED
  if (typeof result === 'string') return `string of ${result.length}`
  return Array.isArray(result) ? `list of ${result.length}` : 'object'
}
