import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { StreamTable } from './stream-table.ts'

test('a table of streams behaves as a Map by id', () => {
  const step = fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 200 }))
  const property = fc.property(fc.array(step, { maxLength: 400 }), fc.boolean(), (steps, isClient) => {
    const table = new StreamTable<{ id: number }>()
    const model = new Map<number, { id: number }>()
    for (const [adds, number] of steps) {
      const id = 2 * number + (isClient ? 1 : 2)
      if (adds) {
        const stream = { id }
        table.set(stream)
        model.set(id, stream)
      } else {
        table.delete(id)
        model.delete(id)
      }
      expect(table.get(id)).toBe(model.get(id))
      expect(table.size).toBe(model.size)
    }
    for (const [id, stream] of model) expect(table.get(id)).toBe(stream)
    expect(table.values().toSorted((a, b) => a.id - b.id)).toEqual([...model.values()].toSorted((a, b) => a.id - b.id))
  })
  fc.assert(property, { seed: 7, numRuns: 300 })
})
