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

/** A compiled expression. It has no state; evaluations may nest. */
export interface Program {
  readonly source: string
  /**
   * Members of the context that the expression may read, with what encloses them: `request`, `request.body`. `*` when it
   * reads everything (`variables()`). Members by index (`request["body"]`) do not count.
   */
  readonly reads: ReadonlySet<string>
  /** For statuses: a condition that gives a string, say, will never hold. */
  readonly resultKind: ResultKind
  /**
   * Evaluates with the members of `context` as variables: a plain object or a HostMap. Gives a CelError when it fails,
   * never throws, and always ends soon. Use `toHost` on the result before it leaves.
   */
  readonly eval: (context: object) => Value
}

/** An expression that does not compile. */
export interface CelParseError {
  readonly source: string
  /** At least one, in the order of the source. */
  readonly problems: readonly Diagnostic[]
}

export interface PermissiveProgram {
  readonly program: Program
  /** What statuses should warn of; empty when all is well. */
  readonly problems: readonly Diagnostic[]
}

/**
 * Compiles for a place that refuses bad expressions: syntax, unknown functions, unknown variables and those of other
 * phases, patterns that are no regular expressions.
 */
export function compile(source: string, environment: Environment = {}): Program | CelParseError {
  const { program, problems } = compilePermissive(source, environment)
  return problems.length > 0 ? { source, problems } : program
}

/** What is wrong with the syntax alone: variables, functions and patterns are not looked at. */
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
 * Compiles for the data plane, where one bad expression must not take down its neighbours: what cannot be understood
 * evaluates to an error; with a syntax error that is the whole expression.
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

/** Statuses show a few anyway. */
const MAX_PROBLEMS = 20

function toEvaluator(evaluate: Evaluate, slots: number): Program['eval'] {
  const empty: unknown[] = Array.from({ length: slots })
  return (root) => {
    const frame: Frame = { root, slots: slots === 0 ? empty : empty.slice() }
    const before = beginBudget()
    try {
      return evaluate(frame)
    } catch (thrown) {
      // Nothing else throws but data that nests too deep for the stack, and views of the host.
      return thrown === exhausted ? budgetExceeded : internalError
    } finally {
      endBudget(before)
    }
  }
}

/** Whether an expression reads a member such as `request.body`, or everything. */
export function readsMember({ reads }: Pick<Program, 'reads'>, member: string): boolean {
  return reads.has(member) || reads.has('*')
}
