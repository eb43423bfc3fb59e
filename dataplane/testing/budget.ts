import { afterEach, beforeEach, expect } from '@jest/globals'
import { bodyBudget } from '../http/budget.ts'

/** Limits the buffered bodies of each test in the file or block, and checks that every test releases what it buffered. */
export function limitHeldBytes(limitBytes: number): void {
  let before: number
  beforeEach(() => {
    before = bodyBudget.limitBytes
    bodyBudget.limitBytes = limitBytes
    expect(bodyBudget.heldBytes).toBe(0)
  })
  afterEach(() => {
    bodyBudget.limitBytes = before
    expect(bodyBudget.heldBytes).toBe(0)
  })
}
