import { describe, expect, test } from '@jest/globals'
import { isBroken } from '../cel-rules.ts'
import { readChunk } from '../document.ts'
import { breakConstraints, embed, listPlaces, listRules, nameOf, type Sample } from './samples-testing.ts'

const findIn = ({ object }: Sample): string[] => readChunk(JSON.stringify(object)).findings.map(({ field, message }) => `${field}: ${message}`)

describe('an object of Gateway API is rejected', () => {
  const rules = listRules()

  test('by each rule of the CRDs, at each place that has it', () => {
    expect(rules.length).toBeGreaterThan(200)
    const wrong = rules.flatMap(({ place, rule, self }) => {
      const name = `${nameOf(place)}: ${rule.message}`
      if (self === undefined) return [`${name}: has no object that breaks it`]
      if (!isBroken(rule, self)) return [`${name}: is not broken by ${JSON.stringify(self)}`]
      const found = findIn(embed(place, self))
      // Some rules repeat a constraint of the schema, which is reported in their place.
      return found.some((text) => text.includes(rule.message) || /\[PX200[67]\]/.test(text)) ? [] : [`${name}: ${found.join('; ') || 'is accepted'}`]
    })
    expect(wrong).toEqual([])
  })

  test('by each constraint of each field', () => {
    const samples = listPlaces().flatMap(breakConstraints)
    expect(samples.length).toBeGreaterThan(2000)
    expect(samples.filter((sample) => findIn(sample).length === 0).map(({ title }) => title)).toEqual([])
  })
})

test('each constraint is broken by a sample, whatever keywords a later version of the CRDs has', () => {
  const tried = new Set(
    listPlaces()
      .flatMap(breakConstraints)
      .map(({ title }) => title.replace(/.*: (required )?/, (_, required: string | undefined) => (required ? 'required ' : ''))),
  )
  for (const constraint of [
    'type',
    'enum',
    'pattern',
    'minLength',
    'maxLength',
    'minimum',
    'maximum',
    'minItems',
    'maxItems',
    'maxProperties',
    'keys',
    'set',
    'unknown field',
    'oneOf',
  ])
    expect(tried).toContain(constraint)
})

test('a list that is too long, and an object of many mistakes, are reported within a second', () => {
  const route = (spec: object): Sample => ({
    title: '',
    object: { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute', metadata: { name: 'a' }, spec: spec as never },
  })
  const started = performance.now()
  expect(findIn(route({ hostnames: Array.from({ length: 20_000 }, (_, index) => `-${index}`) }))).toEqual([
    'spec.hostnames: takes at most 16 items, has 20000 [PX2007]',
  ])
  expect(
    findIn(route({ rules: [{ filters: Array.from({ length: 16 }, () => Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`f${index}`, 1]))) }] })),
  ).toHaveLength(100)
  // A pattern with nested repetitions.
  const value = `${'a'.repeat(4000)} \u0000`
  expect(findIn(route({ rules: [{ matches: [{ headers: [{ name: 'a', value }] }] }] }))).toHaveLength(1)
  expect(performance.now() - started).toBeLessThan(5000)
})
