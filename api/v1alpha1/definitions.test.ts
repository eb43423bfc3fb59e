import { describe, expect, test } from '@jest/globals'
import { configDefinitions } from '../config/definitions.ts'
import { messageKinds } from '../config/message-kinds.ts'
import { mapChildren, reachableFrom, refName, type Definitions, type Schema } from '../schema.ts'
import { definitions } from './definitions.ts'
import { kinds } from './kinds.ts'

/** All schemas of a definition, each with its path. */
function walk(schema: Schema, path: string): [path: string, schema: Schema][] {
  const children = [
    ...Object.entries(schema.properties ?? {}).map(([name, child]) => [`${path}.${name}`, child] as const),
    ...(schema.items ? [[`${path}[]`, schema.items] as const] : []),
    ...(typeof schema.additionalProperties === 'object' ? [[`${path}{}`, schema.additionalProperties] as const] : []),
  ]
  return [[path, schema], ...children.flatMap(([at, child]) => walk(child, at))]
}
const everything = (from: Definitions): [string, Schema][] => Object.entries(from).flatMap(([name, schema]) => walk(schema, name))
const find = (wanted: (schema: Schema, path: string) => boolean): string[] =>
  everything(definitions)
    .filter(([path, schema]) => wanted(schema, path))
    .map(([path]) => path)

const isPlainValue = (path: string): boolean => path.endsWith('{}') || path.endsWith('[]')
const violates = ({ default: value, enum: choices, minimum, maximum, pattern }: Schema): boolean =>
  value !== undefined &&
  ((choices !== undefined && !choices.includes(value)) ||
    (typeof value === 'number' && (value < (minimum ?? -Infinity) || value > (maximum ?? Infinity))) ||
    (typeof value === 'string' && pattern !== undefined && !new RegExp(pattern).test(value)))

describe('API definitions', () => {
  test('every definition is reachable from a kind', () => {
    const roots = kinds.map(({ kind }) => kind)
    expect(Object.keys(definitions).filter((name) => !reachableFrom(definitions, roots).includes(name))).toEqual([])
  })

  test('every field has a description, or refers to a definition', () => {
    expect(find((schema, path) => schema.$ref === undefined && !isPlainValue(path) && (schema.description ?? '') === '')).toEqual([])
  })

  test('all descriptions are sentences', () => {
    expect(find(({ description }) => description !== undefined && description !== '' && !/[.:]$/.test(description))).toEqual([])
  })

  test('a reference has only siblings that the generator merges', () => {
    const allowed = ['$ref', 'description', 'default', 'x-kubernetes-validations']
    expect(find((schema) => schema.$ref !== undefined && Object.keys(schema).some((key) => !allowed.includes(key)))).toEqual([])
  })

  test('all required fields exist', () => {
    expect(find(({ required = [], properties = {} }) => required.some((name) => !(name in properties)))).toEqual([])
  })

  test('defaults satisfy their own bounds', () => {
    expect(find(violates)).toEqual([])
  })

  test('ProxyParameters has no defaults, because the operator applies them', () => {
    const names = reachableFrom(definitions, ['ProxyParametersSpec'])
    expect(find((schema, path) => schema.default !== undefined && names.some((name) => path === name || path.startsWith(`${name}.`)))).toEqual([])
  })
})

describe('config definitions', () => {
  const roots = [...Object.values(messageKinds), 'ConfigFile']

  test('all references to other objects are resolved', () => {
    const reached = reachableFrom(configDefinitions, roots)
    const unresolved = ['BackendObjectReference', 'SecretReference', 'ConfigMapReference', 'SecretSelector', 'RemoteJWKS', 'McpSelector']
    expect(unresolved.filter((name) => reached.includes(name))).toEqual([])
  })

  test.each([
    ['ExtAuth', 'backendRef', 'BackendRef'],
    ['BackendAuth', 'secretRef', 'ResolvedSecret'],
    ['BasicAuthentication', 'secretRef', 'ResolvedSecret'],
    ['APIKeyAuthentication', 'secretSelector', 'ResolvedSecrets'],
    ['JWKS', 'remote', 'ResolvedKeySet'],
    ['MCPAuthentication', 'jwks', 'ResolvedKeySet'],
    ['McpTargetSelector', 'selector', 'ResolvedMcpTargets'],
  ])('%s.%s refers to %s', (definition, field, expected) => {
    expect(configDefinitions[definition]?.properties?.[field]?.$ref).toBe(`#/$defs/${expected}`)
  })

  test('references in lists are resolved', () => {
    const tls = configDefinitions['BackendTLS']?.properties
    expect([tls?.['mtlsCertificateRef'], tls?.['caCertificateRefs']].map((field) => refName(field?.items?.$ref ?? ''))).toEqual([
      'ResolvedSecret',
      'ResolvedSecret',
    ])
  })

  test('all other schemas equal those of the API', () => {
    const withoutRefs = (schema: Schema): Schema => (schema.$ref === undefined ? mapChildren(schema, withoutRefs) : {})
    for (const name of ['Traffic', 'Frontend', 'BackendFull', 'LocalRateLimit', 'Authorization']) {
      expect(withoutRefs(configDefinitions[name] ?? {})).toEqual(withoutRefs(definitions[name] ?? {}))
    }
  })
})
