import type { SharedState } from '../state.ts'
import { Bucket, type Budget, type BudgetTerms } from './bucket.ts'
import { initializeBucket, SharedBucket } from './shared-bucket.ts'

/**
 * Creates a budget. With several workers, those that create a budget of the same name charge the same one.
 * @param shared undefined: the budget is not shared
 */
export function createBudget(terms: BudgetTerms, shared: Pick<SharedState, 'cells'> | undefined, name: string): Budget {
  if (shared === undefined) return new Bucket(terms)
  const cell = shared.cells.open(`budget ${name}`, (words) => initializeBucket(words, terms))
  // Without a free cell each worker has a budget of its own: more than the limit may pass, which is better than no traffic.
  return cell === undefined ? new Bucket(terms) : new SharedBucket(cell, terms)
}
