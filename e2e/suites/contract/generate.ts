import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'
import { dereference } from '#api/codegen/crd.ts'
import { readExclusivity } from '#api/codegen/exclusivity.ts'
import { GATEWAY_GROUP, GROUP } from '#api/names.ts'
import { refName, type Json, type Schema } from '#api/schema.ts'
import { definitions } from '#api/v1alpha1/definitions.ts'
import { kinds } from '#api/v1alpha1/kinds.ts'
import { manifest, type Manifest } from './rows/row.ts'

type Fields = Record<string, Json>
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)

const plain: Arbitrary<Json> = fc.oneof(fc.string(), fc.integer(), fc.boolean())
const anyJson: Arbitrary<Json> = fc.oneof(
  plain,
  fc.array(plain, { maxLength: 2 }),
  fc.dictionary(fc.string({ minLength: 1, maxLength: 3 }), plain, { maxKeys: 2 }),
)

/** References whose fields depend on each other: objects generated from the schema alone would rarely be valid. */
const pairs = (choices: readonly (readonly [string, string])[]): Arbitrary<Fields> => fc.constantFrom(...choices).map(([group, kind]) => ({ group, kind }))
const targetKinds = [
  [GATEWAY_GROUP, 'Gateway'],
  [GATEWAY_GROUP, 'HTTPRoute'],
  [GATEWAY_GROUP, 'GRPCRoute'],
  [GATEWAY_GROUP, 'ListenerSet'],
  ['', 'Service'],
  [GROUP, 'ProxyBackend'],
  ['inference.networking.k8s.io', 'InferencePool'],
] as const
const section = fc.constantFrom(undefined, undefined, 'http', '80')
const named = (more: Fields) =>
  fc.tuple(pairs(targetKinds), section).map(([pair, sectionName]) => ({ ...pair, ...more, ...(sectionName === undefined ? {} : { sectionName }) }))
const hints: Readonly<Record<string, Arbitrary<Json>>> = {
  BackendObjectReference: fc.constantFrom<Json>(
    { name: 's', port: 80 },
    { group: GROUP, kind: 'ProxyBackend', name: 'b' },
    { name: 's', namespace: 'n', port: 1 },
    { name: 's' },
  ),
  AIModelBackendReference: fc.constantFrom<Json>(
    { name: 'b' },
    { kind: 'Service', name: 's', port: 80 },
    { kind: 'InferencePool', name: 'p' },
    { kind: 'Service', name: 's' },
  ),
  PolicyTargetReference: named({ name: 'x' }),
  PolicyTargetSelector: named({ matchLabels: {} }),
  Duration: fc.constantFrom('1s', '5m', '1h30m', '10m', '100ms', '1ms', '0s', '30s', '2h'),
}

/** Values that are valid by the schema; CEL rules are satisfied by chance only. */
function arbitraryOf(use: Schema, depth: number): Arbitrary<Json> {
  const name = use.$ref === undefined ? undefined : refName(use.$ref)
  const hint = name === undefined ? undefined : hints[name]
  if (hint) return hint
  const schema = name === undefined ? use : dereference(definitions, use)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema['x-kubernetes-int-or-string']) return fc.constantFrom<Json>(1, '100m', '1Gi')
  switch (schema.type) {
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return fc.integer({ min: schema.minimum ?? -5, max: Math.min(schema.maximum ?? 100_000, 2_000_000_000) })
    case 'string':
      return stringOf(schema)
    case 'array':
      return listOf(schema, depth)
    case 'object':
      return objectOf(schema, depth)
    default:
      return anyJson
  }
}

function stringOf({ pattern, minLength = 0, maxLength = 40, format }: Schema): Arbitrary<Json> {
  if (format === 'date-time') return fc.constant('2026-01-02T03:04:05Z')
  const fits = (text: string): boolean => text.length >= minLength && text.length <= maxLength
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern), { size: 'xsmall' }).filter(fits)
  return fc.string({ minLength, maxLength: Math.min(maxLength, minLength + 12), unit: 'grapheme-ascii' })
}

function listOf({ items = {}, minItems = 0, maxItems = 3, ...schema }: Schema, depth: number): Arbitrary<Json> {
  const key = schema['x-kubernetes-list-map-keys']?.[0]
  const identity = (item: Json): Json => (key === undefined ? item : ((item as Fields)[key] ?? null))
  const bounds = { minLength: minItems, maxLength: Math.min(maxItems, minItems + 2) }
  const item = arbitraryOf(items, depth + 1)
  return schema['x-kubernetes-list-type'] === 'atomic' || schema['x-kubernetes-list-type'] === undefined
    ? fc.array(item, bounds)
    : fc.uniqueArray(item, { ...bounds, selector: identity })
}

function objectOf(schema: Schema, depth: number): Arbitrary<Json> {
  const { properties, additionalProperties } = schema
  if (!properties) {
    const values = typeof additionalProperties === 'object' ? arbitraryOf(additionalProperties, depth + 1) : anyJson
    const minKeys = schema.minProperties ?? 0
    return fc.dictionary(fc.stringMatching(/^[a-z]{1,4}$/), values, { minKeys, maxKeys: Math.max(2, minKeys) })
  }
  const exclusivities = (schema['x-kubernetes-validations'] ?? []).flatMap((rule) => readExclusivity(rule) ?? [])
  const share = Math.max(1, 5 - depth)
  return fc.tuple(...Object.keys(properties).map(() => fc.integer({ min: 0, max: 9 }))).chain((dice) => {
    const chosen = new Set(Object.keys(properties).filter((name, index) => schema.required?.includes(name) || (dice[index] ?? 0) < share))
    for (const { kind, fields } of exclusivities) {
      const pick = fields[(dice[0] ?? 0) % fields.length] ?? ''
      const present = fields.filter((field) => chosen.has(field))
      if (kind !== 'atLeastOne' && present.length > 1) for (const field of fields) chosen.delete(field)
      if (kind !== 'atMostOne' && !fields.some((field) => chosen.has(field))) chosen.add(pick)
    }
    return fc.record(Object.fromEntries([...chosen].map((name) => [name, arbitraryOf(properties[name] ?? {}, depth + 1)]))) as Arbitrary<Json>
  })
}

/** Usually gives all targets one kind, because policies with targets of different kinds are rarely valid. */
function alignTargets(spec: Fields): Fields {
  const align = (targets: Json | undefined): Json[] | undefined => {
    const [first] = Array.isArray(targets) ? (targets as Fields[]) : []
    return first === undefined ? undefined : (targets as Fields[]).map((target) => ({ ...target, group: first['group'] ?? '', kind: first['kind'] ?? '' }))
  }
  const [refs, selectors] = [align(spec['targetRefs']), align(spec['targetSelectors'])]
  return { ...spec, ...(refs ? { targetRefs: refs } : {}), ...(selectors ? { targetSelectors: selectors } : {}) }
}

const paths = (value: Json, path: (string | number)[] = []): (string | number)[][] => {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([key, inner]) => paths(inner, [...path, Array.isArray(value) ? Number(key) : key]))]
}

/** Changes that usually, but not always, make a value invalid. */
const mutations: readonly ((value: Json | undefined) => Json | undefined)[] = [
  () => undefined,
  () => '',
  () => -1,
  () => 0,
  () => 70_000,
  () => true,
  () => [],
  () => ({}),
  () => ({ unknown: 1 }),
  () => 'Not A Value!',
  () => '1ms',
  (value) => (typeof value === 'string' ? value + 'a'.repeat(300) : value),
  (value) => (typeof value === 'number' ? value + 5000 : value),
  (value) => (Array.isArray(value) && value.length > 0 ? [...value, value[0]] : value),
  (value) => (Array.isArray(value) ? [] : value),
  (value) => (isFields(value) ? { ...value, host: 'h', inline: '{}', key: 'k' } : value),
]

function damage(spec: Json, at: number, how: number): Json {
  const copy = structuredClone(spec)
  const all = paths(copy).slice(1)
  const path = all[at % Math.max(1, all.length)]
  if (!path) return copy
  let parent = copy as Record<string | number, Json>
  for (const step of path.slice(0, -1)) parent = parent[step] as Record<string | number, Json>
  const last = path.at(-1) ?? ''
  const value = mutations[how % mutations.length]?.(parent[last])
  if (value !== undefined) parent[last] = value
  else if (Array.isArray(parent)) parent.splice(Number(last), 1)
  else delete parent[last]
  return copy
}

const specs = Object.fromEntries(kinds.map(({ kind }) => [kind, arbitraryOf({ $ref: `#/$defs/${kind}Spec` }, 0)]))

/** Random objects of the project's kinds; one in five has one mutation. */
export const manifests: Arbitrary<Manifest> = fc
  .tuple(
    fc.constantFrom('ProxyPolicy', 'ProxyPolicy', 'ProxyPolicy', 'ProxyBackend', 'ProxyBackend', 'ProxyParameters'),
    fc.integer({ min: 0, max: 4 }),
    fc.nat(),
    fc.nat(),
  )
  .chain(([kind, dice, at, how]) =>
    (specs[kind] as Arbitrary<Json>).map((generated) => {
      const spec = kind === 'ProxyPolicy' ? alignTargets(generated as Fields) : generated
      return manifest(kind, dice < 1 ? damage(spec, at, how) : spec)
    }),
  )
