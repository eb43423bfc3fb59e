import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { Ajv, type SchemaObject } from 'ajv'
import { configDefinitions } from '../config/definitions.ts'
import { messageKinds } from '../config/message-kinds.ts'
import { toBundle } from './json-schema.ts'

const roots = [...Object.values(messageKinds), 'ConfigFile']
const bundle = JSON.parse(toBundle(configDefinitions, roots, 'config', 'ConfigFile')) as SchemaObject
// Strict: an unknown keyword or a type that does not fit its keywords is an error of the generator.
const ajv = new Ajv({ allErrors: true, strict: true, strictRequired: false }).addSchema(bundle, 'config')

function errorsOf(definition: string, value: unknown): string[] {
  const validate = ajv.compile({ $ref: `config#/$defs/${definition}` })
  validate(value)
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

const policy = {
  key: 'traffic/default/p:0',
  policy: { kind: 'ProxyPolicy', namespace: 'default', name: 'p' },
  target: { kind: 'Gateway', namespace: 'default', name: 'g' },
}
const timeouts = { ...policy, traffic: { timeouts: { request: '1s' } } }

describe('the config schema', () => {
  test.each([...roots])('definition %s compiles in Ajv', (name) => {
    expect(typeof ajv.compile({ $ref: `config#/$defs/${name}` })).toBe('function')
  })

  test.each<[string, string, unknown]>([
    ['an empty file', 'ConfigFile', {}],
    ['a policy as written', 'Policy', timeouts],
    ['a resolved backend', 'ExtProc', { backendRef: { service: 'default/s', port: 80 } }],
    ['a resolved secret', 'BackendAuth', { secretRef: { secret: 'default/s' } }],
    ['a broken reference', 'JWKS', { remote: { invalid: 'not fetched yet' } }],
    ['any JSON as default of an LLM field', 'FieldDefault', { field: 'f', value: { deep: [1] } }],
  ])('accepts %s', (_, definition, value) => expect(errorsOf(definition, value)).toEqual([]))

  test.each<[string, string, unknown, string]>([
    ['an unknown field', 'Policy', { ...timeouts, color: 'red' }, ' must NOT have additional properties'],
    [
      'an unknown nested field',
      'Policy',
      { ...policy, traffic: { timeouts: { request: '1s', idle: '1s' } } },
      '/traffic/timeouts must NOT have additional properties',
    ],
    ['two of exactly one', 'Policy', { ...timeouts, backend: { tcp: {} } }, ' must match exactly one schema in oneOf'],
    ['none of exactly one', 'ResolvedSecret', {}, ' must match exactly one schema in oneOf'],
    ['two of at most one', 'BackendTLS', { insecureSkipVerify: 'All', verifySubjectAltNames: ['a'] }, ' must NOT be valid'],
    ['none of at least one', 'RateLimits', {}, ' must match a schema in anyOf'],
    ['a bound', 'DirectResponse', { status: 199 }, '/status must be >= 200'],
    ['a pattern', 'Timeouts', { request: 'soon' }, '/request must match pattern "^([0-9]{1,5}(h|m|s|ms)){1,4}$"'],
    ['duplicates in a set', 'Retry', { codes: [503, 503] }, '/codes must NOT have duplicate items (items ## 1 and 0 are identical)'],
    ['null for any JSON', 'FieldDefault', { field: 'f', value: null }, '/value must NOT be valid'],
    ['an unresolved reference', 'ExtProc', { backendRef: { name: 's', port: 80 } }, '/backendRef must NOT have additional properties'],
  ])('rejects %s', (_, definition, value, expected) => expect(errorsOf(definition, value)).toContain(expected))
})

describe('the schema files of editors', () => {
  const kinds = new Ajv({ allErrors: true, strict: false }).compile(JSON.parse(readFileSync('gen/v1alpha1/schema.json', 'utf8')) as SchemaObject)
  const config = new Ajv({ allErrors: true, strict: false }).compile(JSON.parse(readFileSync('gen/config/schema.json', 'utf8')) as SchemaObject)

  test('a config file is validated without a pointer into the document', () => {
    expect(config({ binds: [{ port: 80, listeners: [] }] })).toBe(true)
    expect(config({ foo: 1, binds: 'x' })).toBe(false)
    expect((config.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)).toEqual([
      ' must NOT have additional properties',
      '/binds must be array',
    ])
  })

  test('a manifest is validated as its kind', () => {
    const metadata = { name: 'a' }
    const valid = { apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyParameters', metadata, spec: {} }
    expect(kinds(valid)).toBe(true)
    expect(kinds({ ...valid, spec: { imag: {} } })).toBe(false)
    expect((kinds.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)).toContain('/spec must NOT have additional properties')
    expect(kinds({ ...valid, kind: 'ProxyPolciy' })).toBe(false)
    expect(kinds({ metadata })).toBe(false)
  })
})
