import { describe, expect, test } from '@jest/globals'
import { configDefinitions } from '../config/definitions.ts'
import { object, ref, string, type Definitions, type Schema } from '../schema.ts'
import { definitions } from '../v1alpha1/definitions.ts'
import { findSchemaMistakes } from './check.ts'

describe('findSchemaMistakes', () => {
  test.each([
    ['the kinds', definitions],
    ['the config', configDefinitions],
  ])('finds nothing in %s', (_, known) => expect(findSchemaMistakes(known)).toEqual([]))

  const pet = (field: Schema, required: string[] = []): Definitions => ({ Pet: object('A pet.', { field }, required) })
  test.each<[string, Definitions, string]>([
    [
      'a type that does not exist',
      pet({ type: 'strng' as 'string', description: 'A.' }),
      'Pet.field: type strng is none of object, array, string, integer, number, boolean',
    ],
    ['a field without description', pet({ type: 'string' }), 'Pet.field: has no description'],
    ['a reference to nothing', pet(ref('Durration')), 'Pet.field: definition Durration does not exist; write it, or correct the reference'],
    [
      'a reference to nothing in a list',
      pet({ type: 'array', description: 'A.', items: ref('Durration') }),
      'Pet.field[]: definition Durration does not exist; write it, or correct the reference',
    ],
    ['a required field that does not exist', pet(string('A.'), ['feild']), 'Pet: requires feild, which is no field of it'],
  ])('reports %s with its path', (_, wrong, expected) => expect(findSchemaMistakes(wrong)).toEqual([expected]))
})
