import { randomUUID } from 'node:crypto'
import { compilePermissive, environments, readsMember, type Entropy, type Phase, type Program } from '#api/cel/index.ts'
import { ExchangeView } from './view.ts'

const entropy: Entropy = { random: () => Math.random(), uuid: () => randomUUID() }

/**
 * Compiles for a place in the data plane. Never throws: what does not compile fails whenever it is evaluated, which every use
 * has a meaning for (traffic.md §9). The operator's status says what is wrong.
 */
export function compileExpression(source: string, phase: Phase): Program {
  const { program } = compilePermissive(source, { ...environments[phase], entropy })
  return { ...program, eval: (context) => evalTraced(program, context) }
}

function evalTraced(program: Program, context: object): ReturnType<Program['eval']> {
  const value = program.eval(context)
  if (context instanceof ExchangeView) context.trace?.addExpression(program.source, value)
  return value
}

/** Whether the request's body has to be buffered for any of them (traffic.md §9, body rule). */
export function readsRequestBody(programs: readonly Program[]): boolean {
  return programs.some((program) => readsMember(program, 'request.body') || readsMember(program, 'request.bodyPrefix'))
}

/** As `readsRequestBody`, for the response's. */
export function readsResponseBody(programs: readonly Program[]): boolean {
  return programs.some((program) => readsMember(program, 'response.body') || readsMember(program, 'response.bodyPrefix'))
}
