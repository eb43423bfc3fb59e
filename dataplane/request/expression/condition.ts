import { evalCondition, evalDenial, type Phase, type Program } from '#api/cel/index.ts'
import { compileExpression } from './program.ts'
import type { ExchangeView } from './view.ts'

/**
 * The effect of a condition that cannot be evaluated on a request (traffic.md §3). `applies`: its section protects, and a client must not evade it.
 * `appliesUnlessAbsent`: an absent value does not match, other failures do. `skips`: the section protects nothing.
 */
export type OnFailure = 'applies' | 'appliesUnlessAbsent' | 'skips'

/** The expression `when` of a section. */
export interface Condition {
  readonly program: Program
  holds(view: ExchangeView): boolean
}

export function compileCondition(when: string, onFailure: OnFailure, phase: Phase = 'request'): Condition {
  const program = compileExpression(when, phase)
  const evaluate = onFailure === 'appliesUnlessAbsent' ? evalDenial : evalCondition
  return {
    program,
    holds(view) {
      const value = evaluate(program, view)
      return typeof value === 'boolean' ? value : onFailure !== 'skips'
    },
  }
}
