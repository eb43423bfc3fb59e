import { expect, test } from '@jest/globals'
import { fileOptionsOf } from './options.ts'

test('a process with the variable XDS_ADDRESS, even an empty one, keeps placeholders of its config file as text', () => {
  expect(fileOptionsOf({ XDS_ADDRESS: 'http://operator:9978', NAMESPACE: 'n', GATEWAY: 'g' })).toEqual({
    namespace: 'n',
    gateway: 'g',
    placeholders: 'literal',
  })
  expect(fileOptionsOf({ XDS_ADDRESS: '' })).toMatchObject({ placeholders: 'literal' })
  expect(fileOptionsOf({ NAMESPACE: 'n', GATEWAY: 'g' })).toEqual({})
})
