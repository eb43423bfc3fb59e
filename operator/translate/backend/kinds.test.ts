import { expect, test } from '@jest/globals'
import { kindDefinitions } from '#api/v1alpha1/kinds.ts'
import { kindOf, kinds } from './kinds.ts'

test('each field of a ProxyBackend in the schema is a kind of the list', () => {
  const { properties } = kindDefinitions['ProxyBackendSpec'] as { properties: object }
  const fields = Object.keys(properties).filter((name) => name !== 'policies')
  expect(Object.keys(kinds).toSorted()).toEqual(fields.toSorted())
})

test('the kind of a backend comes with its part of the spec, and of the config while the backend is in force', () => {
  const place = { host: 'a', port: 80 }
  const sent = { host: 'b', port: 80 }
  expect(kindOf({ a2a: place }, { key: 'ns/a', a2a: sent })).toEqual({ kind: kinds.a2a, part: place, sent })
  expect(kindOf({ static: place })).toEqual({ kind: kinds.static, part: place, sent: undefined })
})
