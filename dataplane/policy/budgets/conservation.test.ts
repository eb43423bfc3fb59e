import { test } from '@jest/globals'
import { allocateCells, SharedCells } from '../../runtime/shared-cells.ts'
import { createPolicyState } from '../state.ts'
import { checkConservation } from './testing.ts'

const RUNS = 300

test('a counter in memory takes back exactly what it was charged', async () => {
  await checkConservation((epochMs) => {
    const state = createPolicyState({ epochMs })
    return { budget: {}, states: [state, state] }
  }, RUNS)
})

test('a counter of all workers takes back exactly what it was charged', async () => {
  await checkConservation((epochMs) => {
    const memory = allocateCells(64)
    const open = () => createPolicyState({ epochMs, budgetCells: new SharedCells(memory, { evicts: true }) })
    const states = [open(), open()]
    return { budget: {}, states, restart: (nth) => void (states[nth] = open()) }
  }, RUNS)
})
