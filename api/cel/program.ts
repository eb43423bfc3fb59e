import { chainOf, type Node } from './ast.ts'
import { beginBudget, endBudget, exhausted } from './budget.ts'
import { Compilation } from './compile/code.ts'
import type { Evaluate, Frame } from './compile/code.ts'
import { compileNode } from './compile/expression.ts'
import { SyntaxProblem, diagnose } from './diagnostic.ts'
import type { Diagnostic } from './diagnostic.ts'
import type { Environment } from './environment.ts'
import { CelError, budgetExceeded, internalError } from './error.ts'
import { kindOf } from './kind.ts'
import type { ResultKind } from './kind.ts'
import { parse } from './parser.ts'
import type { Value } from './values.ts'

/** A compiled expression. Stateless; evaluations may nest. */
export interface Program {
  readonly source: string
  /**
   * Variables and members that the expression may read, with their parents: `request`, `request.body`. `*` if it reads
   * everything (`variables()`), `json()` if it parses JSON. Members accessed by index (`request["body"]`) are not included.
   */
  readonly reads: ReadonlySet<string>
  /** For warnings in statuses: a condition of type string, for example, never holds. */
  readonly resultKind: ResultKind
  /**
   * Evaluates with the members of `context` (a plain object or a HostMap) as variables. Returns a CelError on failure; never
   * throws, and always ends within its budget. Convert the result with `toHost` before it leaves the expression language.
   */
  readonly eval: (context: object) => Value
}

/** An expression that does not compile. */
export interface CelParseError {
  readonly source: string
  /** At least one, in the order of the source. */
  readonly problems: readonly Diagnostic[]
}

/** An expression that was compiled despite its problems. */
export interface PermissiveProgram {
  readonly program: Program
  /** Warnings for statuses; empty if there are none. */
  readonly problems: readonly Diagnostic[]
}

/**
 * Compiles an expression and rejects it for any problem: syntax errors, unknown functions, unknown variables, variables of other
 * phases, invalid regular expressions.
 *
 * @example
 * const result = compile('request.method == "GET"', environments.request)
 * if (isParseError(result)) throw new Error(result.problems.map(formatDiagnostic).join('; '))
 * evalBool(result, { request: { method: 'GET' } }) // true
 */
export function compile(source: string, environment: Environment = {}): Program | CelParseError {
  const { program, problems } = compilePermissive(source, environment)
  return problems.length > 0 ? { source, problems } : program
}

/** Checks the syntax only, not variables, functions and patterns. Undefined if it is correct. */
export function findSyntaxProblem(source: string): Diagnostic | undefined {
  try {
    parse(source)
    return undefined
  } catch (thrown) {
    if (!(thrown instanceof SyntaxProblem)) throw thrown
    return diagnose(source, thrown.offset, thrown.message)
  }
}

export function isParseError(result: Program | CelParseError): result is CelParseError {
  return 'problems' in result
}

/**
 * Compiles for the data plane, where an invalid part must not disable the rest of an expression: the part evaluates to an error.
 * With a syntax error the whole expression does.
 */
export function compilePermissive(source: string, environment: Environment = {}): PermissiveProgram {
  const compilation = new Compilation(environment, compileNode)
  try {
    const node = parse(source)
    const { evaluate } = compilation.compile(node, undefined)
    const problems = compilation.problems.toSorted((a, b) => a.offset - b.offset).slice(0, MAX_PROBLEMS)
    return {
      program: { source, reads: compilation.reads, resultKind: kindOf(node), eval: toEvaluator(evaluate, compilation.slots) },
      problems: problems.map(({ offset, message }) => diagnose(source, offset, message)),
    }
  } catch (thrown) {
    if (!(thrown instanceof SyntaxProblem)) throw thrown
    const error = new CelError('invalid', thrown.message, thrown.offset)
    return { program: { source, reads: new Set(), resultKind: 'dyn', eval: () => error }, problems: [diagnose(source, thrown.offset, thrown.message)] }
  }
}

/** Statuses show only the first few. */
const MAX_PROBLEMS = 20

function toEvaluator(evaluate: Evaluate, slots: number): Program['eval'] {
  const empty: unknown[] = Array.from({ length: slots })
  return (root) => {
    const frame: Frame = { root, slots: slots === 0 ? empty : empty.slice() }
    const before = beginBudget()
    try {
      return evaluate(frame)
    } catch (thrown) {
      // The other exceptions are stack overflows, for deeply nested data, and those of host views.
      return thrown === exhausted ? budgetExceeded : internalError
    } finally {
      endBudget(before)
    }
  }
}

/** Whether an expression may read a member such as `request.body`. */
export function readsMember({ reads }: Pick<Program, 'reads'>, member: string): boolean {
  return reads.has(member) || reads.has('*')
}

/** Functions, members and headers whose values differ from request to request, although a client sends the same. */
const FUNCTIONS: ReadonlySet<string> = new Set(['random', 'uuid'])
const MEMBERS: ReadonlySet<string> = new Set(['request.startTime', 'request.endTime', 'source.port', 'source.rawPort'])
const HEADERS = /^(?:x-request-id|x-correlation-id|x-trace-id|x-amzn-trace-id|x-cloud-trace-context|x-b3-[\w-]+|traceparent|tracestate|date|idempotency-key)$/i

/**
 * What an expression uses that differs from request to request, as it is written; empty for an expression that does not parse.
 *
 * @example
 * findUnstable('[{"role": "system", "content": string(request.startTime)}]') // ['request.startTime']
 */
export function findUnstable(source: string): string[] {
  const found = new Set<string>()
  try {
    visit(parse(source), found)
  } catch {
    // Reported elsewhere.
  }
  return [...found]
}

function visit(value: unknown, found: Set<string>): void {
  if (Array.isArray(value)) for (const one of value as unknown[]) visit(one, found)
  else if (typeof value === 'object' && value !== null && !(value instanceof Uint8Array)) {
    const name = 'kind' in value ? nameOf(value as Node) : undefined
    if (name !== undefined) found.add(name)
    for (const member of Object.values(value)) visit(member, found)
  }
}

/** The name of a node that is unstable. */
function nameOf(node: Node): string | undefined {
  if (node.kind === 'call') return FUNCTIONS.has(node.name) && node.target === undefined ? `${node.name}()` : undefined
  if (node.kind === 'index') {
    const { operand, index } = node
    const header = index.kind === 'literal' && typeof index.value === 'string' && HEADERS.test(index.value) ? index.value : undefined
    return header !== undefined && chainOf(operand)?.join('.') === 'request.headers' ? `request.headers[${JSON.stringify(header)}]` : undefined
  }
  const chain = node.kind === 'select' ? chainOf(node)?.join('.') : undefined
  if (chain === undefined) return undefined
  const header = /^request\.headers\.(.+)$/.exec(chain)?.[1]
  return MEMBERS.has(chain) || (header !== undefined && HEADERS.test(header)) ? chain : undefined
}
