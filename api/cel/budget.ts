/**
 * Steps of one evaluation. A step is one iteration of a macro, 256 characters or bytes read, or 64 created. The limit
 * corresponds to about 100 ms of one core at most, and suffices to parse a body of 50 MB.
 */
const MAX_STEPS = 300_000

/** Remaining steps. Evaluation is synchronous, so one counter suffices. Infinity outside an evaluation: only expression evaluation is budgeted. */
let left = Infinity

/** Thrown by `charge` and caught by the program. Thrown rather than returned, so that `||` does not absorb it. */
export const exhausted = new Error('the evaluation budget is exhausted')

/** Takes steps from the budget. Throws `exhausted` when none are left. */
export function charge(steps: number): void {
  left -= steps
  if (left < 0) throw exhausted
}

/** Charges for work that is linear in `length` characters, bytes or elements. */
export function chargeLength(length: number): void {
  if (length > 256) charge(Math.floor(length / 256))
}

/** Runs `work` with a full budget, then restores the previous one: views of the host may evaluate expressions within expressions. */
export function withBudget<T>(work: () => T): T {
  const before = left
  left = MAX_STEPS
  try {
    return work()
  } finally {
    left = before
  }
}

/** As `withBudget`, without a closure. Returns the value to pass to `endBudget`. */
export function beginBudget(): number {
  const before = left
  left = MAX_STEPS
  return before
}

export function endBudget(before: number): void {
  left = before
}
