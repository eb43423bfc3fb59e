import { expect, test } from '@jest/globals'
import { Causes } from './causes.ts'

test('each cause is new once until the server works again', () => {
  const causes = new Causes()
  expect(causes.clear()).toBe(false)
  expect(['refused', 'refused', 'late', 'refused'].map((cause) => causes.isNew(cause))).toEqual([true, false, true, false])
  expect([causes.clear(), causes.clear()]).toEqual([true, false])
  expect(causes.isNew('refused')).toBe(true)
})

test('10 causes of an outage are new at most', () => {
  const causes = new Causes()
  expect(Array.from({ length: 1000 }, (_, nth) => causes.isNew(`request ${nth} failed`)).filter(Boolean)).toHaveLength(10)
})
