import { chargeLength } from '../budget.ts'
import type { Entropy } from '../environment.ts'
import { noEntropy } from '../error.ts'
import type { FunctionTable } from './table.ts'

/** Functions that return another value with each call. Without a source of randomness they fail when evaluated. */
export function randomFunctions(entropy: Entropy | undefined): FunctionTable {
  return {
    'random/0': () => entropy?.random() ?? noEntropy,
    'uuid/0': () => {
      chargeLength(1024)
      return entropy?.uuid() ?? noEntropy
    },
  }
}
