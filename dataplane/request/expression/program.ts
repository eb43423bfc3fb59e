import { randomUUID } from 'node:crypto'
import { compilePermissive, environments, readsMember, type Entropy, type Phase, type Program } from '#api/cel/index.ts'
import { ExchangeView } from './view.ts'

/** Randomness of all expressions. */
export const entropy: Entropy = { random: () => Math.random(), uuid: () => randomUUID() }

/**
 * Compiles an expression for a phase. Never throws: an invalid expression fails at each evaluation, and every use defines what
 * a failure means (traffic.md §9). The operator reports the error in the status.
 */
export function compileExpression(source: string, phase: Phase): Program {
  const { program } = compilePermissive(source, { ...environments[phase], entropy })
  return { ...program, eval: (context) => evalTraced(program, context) }
}

/** Why an expression does not compile for a phase; undefined if it does. */
export function findProblem(source: string, phase: Phase): string | undefined {
  const [problem] = compilePermissive(source, environments[phase]).problems
  return problem?.message
}

function evalTraced(program: Program, context: object): ReturnType<Program['eval']> {
  const value = program.eval(context)
  if (context instanceof ExchangeView) context.trace?.addExpression(program.source, value)
  return value
}

/** Whether any of the programs needs the request's body, which must be buffered then (traffic.md §9, body rule): it has the method of A2A requests. */
export function needsRequestBody(programs: readonly Program[]): boolean {
  return readsRequestBody(programs) || programs.some((program) => readsMember(program, 'a2a'))
}

/** Whether any of the programs reads the request's body. */
export function readsRequestBody(programs: readonly Program[]): boolean {
  return programs.some((program) => readsMember(program, 'request.body') || readsMember(program, 'request.bodyPrefix'))
}

/** Whether any of the programs parses JSON, so that bodies should be parsed in advance. */
export function parsesJson(programs: readonly Program[]): boolean {
  return programs.some((program) => readsMember(program, 'json()'))
}

/** Whether any of the programs reads the response's body. */
export function readsResponseBody(programs: readonly Program[]): boolean {
  return programs.some((program) => readsMember(program, 'response.body') || readsMember(program, 'response.bodyPrefix'))
}
