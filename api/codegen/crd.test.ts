import { describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { atLeastOneOf, exactlyOneOf, atMostOneOf, object, ref, string, integer, type Definitions, type Schema } from '../schema.ts'
import { definitions } from '../v1alpha1/definitions.ts'
import { kinds } from '../v1alpha1/kinds.ts'
import { toCrd, toStructural } from './crd.ts'
import { readExclusivity } from './exclusivity.ts'

/** Maximum size of the last-applied annotation of `kubectl apply`. */
const MAX_ANNOTATION_BYTES = 262_144

const nodesOf = (schema: Schema): Schema[] => {
  const inner = [
    ...Object.values(schema.properties ?? {}),
    ...(schema.items ? [schema.items] : []),
    ...(typeof schema.additionalProperties === 'object' ? [schema.additionalProperties] : []),
  ]
  return [schema, ...inner.flatMap((child) => nodesOf(child))]
}

describe.each(kinds.map((kind) => [kind.kind, kind] as const))('the manifest of %s', (_, kind) => {
  const crd = parse(toCrd(definitions, kind)) as {
    metadata: { name: string }
    spec: { versions: { schema: { openAPIV3Schema: Schema }; subresources: unknown }[] }
  }
  const nodes = nodesOf(crd.spec.versions[0]?.schema.openAPIV3Schema ?? {})

  test('has a structural schema', () => {
    expect(nodes.filter((node) => node.$ref !== undefined || node.additionalProperties === false)).toEqual([])
    const untyped = nodes.filter((node) => node.type === undefined && !node['x-kubernetes-int-or-string'] && !node['x-kubernetes-preserve-unknown-fields'])
    expect(untyped).toEqual([])
  })

  test('fits into the annotation of kubectl apply', () => {
    // kubectl writes JSON as Go does, with these characters escaped, and the bound is for all annotations.
    const written = JSON.stringify(crd).replaceAll(/[<>&]/g, '\\u003c')
    expect(Buffer.byteLength(written)).toBeLessThan(MAX_ANNOTATION_BYTES - 256)
  })

  test('has a status subresource and the API group in its name', () => {
    expect(crd.spec.versions[0]?.subresources).toEqual({ status: {} })
    expect(crd.metadata.name).toBe(`${kind.plural}.proxy.dev`)
  })
})

describe('toStructural', () => {
  const small: Definitions = {
    Size: integer('How big.', 1, 9),
    Box: object('A box.', { size: { ...ref('Size', 'Size of the box.'), default: 2 }, label: string('Label.') }, [], [atLeastOneOf('size', 'label')]),
    Shelf: object('A shelf.', { box: ref('Box'), depth: { ...ref('Size'), default: 3, 'x-kubernetes-validations': [{ rule: 'self > 2', message: 'deep' }] } }),
  }
  const shelf = toStructural(small, ref('Shelf'))

  test('replaces a reference by its definition and merges its siblings', () => {
    expect(shelf.properties?.['depth']).toEqual({ ...small['Size'], default: 3, 'x-kubernetes-validations': [{ rule: 'self > 2', message: 'deep' }] })
    expect(shelf.properties?.['box']?.properties?.['size']?.description).toBe('Size of the box.')
  })

  test('removes a default that would make an empty object valid', () => {
    expect(shelf.properties?.['box']?.properties?.['size']?.default).toBeUndefined()
  })

  test('throws for an unknown reference, with its name', () => {
    expect(() => toStructural(small, ref('Lid'))).toThrow('#/$defs/Lid does not exist')
  })
})

describe('readExclusivity', () => {
  test.each([
    ['exactlyOneOf', exactlyOneOf('a', 'b'), { kind: 'exactlyOne', fields: ['a', 'b'] }],
    ['atMostOneOf', atMostOneOf('a', 'b', 'c'), { kind: 'atMostOne', fields: ['a', 'b', 'c'] }],
    ['atLeastOneOf', atLeastOneOf('a'), { kind: 'atLeastOne', fields: ['a'] }],
    ['another rule', { rule: 'has(self.a) == has(self.b)', message: '' }, undefined],
    ['a list that is something else', { rule: '[has(self.a)].filter(x,x).size() == 0', message: '' }, undefined],
  ])('parses %s', (_, rule, expected) => expect(readExclusivity(rule)).toEqual(expected))
})
