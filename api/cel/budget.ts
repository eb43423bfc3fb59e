/**
 * Steps left of the evaluation under way. Evaluation is synchronous, so one counter serves all. A step is one round of a
 * macro, 256 characters or bytes looked at, or 64 made. The limit is worth some 100 ms of one core at the very most, and leaves
 * room to parse a body of 50 MB.
 */
const MAX_STEPS = 300_000

/** Endless outside of evaluations: what the host does by itself is its own affair. */
let left = Infinity

/** Thrown by `charge` and caught by the program: exhaustion ends the evaluation, `||` does not absorb it. */
export const exhausted = new Error('the evaluation budget is exhausted')

export function charge(steps: number): void {
  left -= steps
  if (left < 0) throw exhausted
}

/** For work that is linear in `length` characters, bytes or elements. */
export function chargeLength(length: number): void {
  if (length > 256) charge(Math.floor(length / 256))
}

/** Runs `work` with a full budget. Views of the host may evaluate expressions within expressions, hence the return. */
export function withBudget<T>(work: () => T): T {
  const before = left
  left = MAX_STEPS
  try {
    return work()
  } finally {
    left = before
  }
}

/** As `withBudget`, without the closure: gives what to pass to `endBudget`. */
export function beginBudget(): number {
  const before = left
  left = MAX_STEPS
  return before
}

export function endBudget(before: number): void {
  left = before
}
