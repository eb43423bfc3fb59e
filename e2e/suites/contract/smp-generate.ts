import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'
import type { Json, JsonObject } from '../../../operator/deploy/patch/json.ts'
import { isList, isObject } from '../../../operator/deploy/patch/json.ts'
import { findShape, type Field, type Shape } from '../../../operator/deploy/patch/shape.ts'

/** An object of a kind that overlays can patch, and a strategic merge patch for it. */
export interface Pair {
  readonly kind: string
  readonly object: JsonObject
  readonly patch: JsonObject
}

const apiVersions: Readonly<Record<string, string>> = {
  Deployment: 'apps/v1',
  Service: 'v1',
  ServiceAccount: 'v1',
  PodDisruptionBudget: 'policy/v1',
  HorizontalPodAutoscaler: 'autoscaling/v2',
}
const patchedKinds: readonly string[] = Object.keys(apiVersions)

const text = fc.constantFrom('a', 'b', 'c', 'd')
const scalars: Readonly<Record<string, Arbitrary<Json>>> = {
  string: text,
  boolean: fc.boolean(),
  integer: fc.integer({ min: 0, max: 5 }),
  number: fc.integer({ min: 0, max: 5 }),
  intstr: fc.oneof(fc.integer({ min: 0, max: 5 }), fc.constant('10%')),
  quantity: fc.constantFrom('100m', '1', '128Mi'),
}
/** Fields that contain lists with merge keys; random objects have them often. */
const favoured = new Set([
  'metadata',
  'spec',
  'template',
  'containers',
  'initContainers',
  'volumes',
  'env',
  'ports',
  'strategy',
  'selector',
  'volumeMounts',
  'topologySpreadConstraints',
  'hostAliases',
  'imagePullSecrets',
  'args',
])
/** Fields that are never generated. Tolerations are merged differently from Kubernetes on purpose. */
const omitted = new Set(
  'apiVersion kind name namespace tolerations managedFields creationTimestamp deletionTimestamp deletionGracePeriodSeconds generateName generation resourceVersion selfLink uid'.split(
    ' ',
  ),
)
const MAX_DEPTH = 9

const fieldsOf = (shape: Shape, key?: string): [string, Field][] =>
  [...shape].filter(([name]) => name !== key && (!omitted.has(name) || (name === 'name' && key !== 'name')))

const list = (items: Arbitrary<readonly Json[]>): Arbitrary<Json> => items.map((each) => each)
const dictionary = (value: Arbitrary<Json>): Arbitrary<Json> => fc.dictionary(text, value, { maxKeys: 3 }).map((each) => ({ ...each }))

/** A value without directives and nulls. */
function valueOf(field: Field, depth: number): Arbitrary<Json> {
  const item = itemOf(field.type, depth, field.mergeKey)
  if (field.container === 'map') return dictionary(item)
  if (field.container === 'none') return item
  const key = field.mergeKey
  return list(fc.uniqueArray(item, { minLength: 1, maxLength: 4, selector: (each) => JSON.stringify(key !== undefined && isObject(each) ? each[key] : each) }))
}

function itemOf(type: string, depth: number, key?: string): Arbitrary<Json> {
  const scalar = scalars[type]
  if (scalar) return scalar
  const shape = findShape(type)
  return shape ? objectOf(shape, depth, key) : fc.constant({})
}

/** Some fields of a shape, always its merge key. */
function objectOf(shape: Shape, depth: number, key?: string): Arbitrary<JsonObject> {
  const fields = fieldsOf(shape, key)
  const keyField = key === undefined ? undefined : shape.get(key)
  const keyed: Arbitrary<JsonObject> = key !== undefined && keyField ? valueOf(keyField, depth).map((value) => ({ [key]: value })) : fc.constant({})
  if (fields.length === 0 || depth >= MAX_DEPTH) return keyed
  return fc
    .tuple(keyed, chooseFields(fields, depth))
    .chain(([start, chosen]) =>
      fc.record(Object.fromEntries(chosen.map(([name, field]) => [name, valueOf(field, depth + 1)]))).map((rest) => ({ ...start, ...rest })),
    )
}

function chooseFields(fields: readonly [string, Field][], depth: number): Arbitrary<[string, Field][]> {
  const liked = fields.filter(([name]) => favoured.has(name))
  const some = fc.subarray([...fields], { maxLength: Math.min(fields.length, depth > 5 ? 2 : 3) })
  return fc.tuple(fc.subarray(liked, { minLength: Math.ceil(liked.length / 2) }), some).map(([a, b]) => [...new Map([...a, ...b])])
}

const none = fc.constant<JsonObject>({})

/** A patch of an existing map: changed, added and removed fields, and directives. */
function patchOf(original: JsonObject, shape: Shape | undefined, depth: number, key?: string): Arbitrary<JsonObject> {
  if (!shape) return dictionary(text).map((each) => (isObject(each) ? each : {}))
  const fields = fieldsOf(shape, key)
  const start: JsonObject = key === undefined ? {} : { [key]: original[key] ?? null }
  const present = fields.filter(([name]) => name in original)
  const changes = fc.subarray(present, { minLength: Math.ceil(present.length / 2), maxLength: Math.min(present.length, 5) })
  const additions = depth >= MAX_DEPTH || fields.length === 0 ? fc.constant<[string, Field][]>([]) : fc.subarray(fields, { maxLength: 1 })
  return fc.tuple(changes, additions).chain(([changed, added]) => {
    const all = new Map([...changed, ...added])
    const parts = [...all].map(([name, field]) => fieldPatch(name, original[name], field, depth + 1))
    return fc
      .tuple(fc.tuple(...parts), retainKeys(original, start, [...all.keys()]))
      .map(([made, retained]) => Object.assign({ ...start }, ...made, retained) as JsonObject)
  })
}

/** `$retainKeys` lists the fields of the patch and some of the original's. */
function retainKeys(original: JsonObject, start: JsonObject, names: readonly string[]): Arbitrary<JsonObject> {
  const others = Object.keys(original).filter((name) => !names.includes(name))
  const must = [...Object.keys(start), ...names, 'apiVersion', 'kind', 'metadata']
  return fc.oneof(
    { weight: 6, arbitrary: none },
    { weight: 1, arbitrary: fc.subarray(others).map((some) => ({ $retainKeys: [...new Set([...must, ...some])] })) },
  )
}

/** The patch of one field: an object with the field and its parallel directives. */
function fieldPatch(name: string, original: Json | undefined, field: Field, depth: number): Arbitrary<JsonObject> {
  const fresh = valueOf(field, depth).map((value) => ({ [name]: value }))
  if (original === undefined) return fc.oneof({ weight: 4, arbitrary: fresh }, { weight: 1, arbitrary: fc.constant({ [name]: null }) })
  if (name === 'metadata' && isObject(original) && depth === 1) return patchOf(original, findShape(field.type), depth).map((value) => ({ [name]: value }))
  const removed = fc.constant<JsonObject>({ [name]: null })
  if (isObject(original)) {
    const shape = field.container === 'none' ? findShape(field.type) : undefined
    const merged = patchOf(original, shape, depth).map((value) => ({ [name]: value }))
    const replaced = valueOf(field, depth).map((value) => ({ [name]: { ...(isObject(value) ? value : {}), $patch: 'replace' } }))
    const deleted = fc.constant<JsonObject>({ [name]: { $patch: 'delete' } })
    if (field.isReplaced) return fc.oneof(fresh, removed)
    return fc.oneof({ weight: 8, arbitrary: merged }, { weight: 1, arbitrary: replaced }, { weight: 1, arbitrary: deleted }, { weight: 1, arbitrary: removed })
  }
  if (isList(original) && field.mergeKey !== undefined) {
    return fc.oneof({ weight: 8, arbitrary: keyedPatch(name, original, field, field.mergeKey, depth) }, { weight: 1, arbitrary: removed })
  }
  if (isList(original) && original.every((item) => typeof item !== 'object')) {
    const values = [...new Set(original)]
    const deleted = fc.subarray(values, { minLength: Math.min(1, values.length) }).map((some) => ({ [`$deleteFromPrimitiveList/${name}`]: some }))
    const ordered = fc.shuffledSubarray(values, { minLength: 1 }).map((some) => ({ [`$setElementOrder/${name}`]: some }))
    return fc.oneof(fresh, removed, deleted, ordered)
  }
  return fc.oneof({ weight: 4, arbitrary: fresh }, { weight: 1, arbitrary: removed })
}

/** Items that are merged, added or deleted; sometimes a replacement of the complete list, or with `$setElementOrder`. */
function keyedPatch(name: string, original: readonly Json[], field: Field, key: string, depth: number): Arbitrary<JsonObject> {
  const shape = findShape(field.type)
  const keys = original.flatMap((item) => (isObject(item) && item[key] !== undefined ? [item[key]] : []))
  const merged = original.map((item) => (isObject(item) ? patchOf(item, shape, depth, key) : none))
  const deleted = fc.constantFrom(...keys).map((value): JsonObject => ({ [key]: value, $patch: 'delete' }))
  const added = shape ? objectOf(shape, depth, key) : none
  const item = fc.oneof({ weight: 3, arbitrary: fc.oneof(...merged) }, { weight: 2, arbitrary: added }, { weight: 1, arbitrary: deleted })
  const items = fc.uniqueArray(item, { minLength: 1, maxLength: 4, selector: (each) => JSON.stringify(each[key]) })
  return items.chain((patch) => {
    const plain = fc.constant<JsonObject>({ [name]: patch })
    const isNew = (each: JsonObject): boolean => !('$patch' in each) && !keys.includes(each[key] ?? null)
    const replaced = fc.constant<JsonObject>({ [name]: [{ $patch: 'replace' }, ...patch.filter(isNew)] })
    const named = patch.filter((each) => !('$patch' in each)).map((each) => each[key] ?? null)
    const others = keys.filter((each) => !named.includes(each))
    const ordered = fc.tuple(fc.shuffledSubarray(others), fc.boolean()).map(([some, isFirst]) => {
      const order = isFirst ? [...some, ...named] : [...named, ...some]
      return { [name]: patch, [`$setElementOrder/${name}`]: order.map((value) => ({ [key]: value })) }
    })
    return fc.oneof({ weight: 5, arbitrary: plain }, { weight: 1, arbitrary: replaced }, { weight: 2, arbitrary: ordered })
  })
}

/** Random pairs of all kinds that overlays can patch. */
export const pairs: Arbitrary<Pair> = fc.constantFrom('Deployment', 'Deployment', 'Deployment', ...patchedKinds).chain((kind) => {
  const shape = findShape(kind) ?? new Map<string, Field>()
  return objectOf(shape, 0).chain((made) => {
    const metadata = isObject(made['metadata']) ? made['metadata'] : {}
    const object: JsonObject = { ...made, apiVersion: apiVersions[kind] ?? '', kind, metadata: { ...metadata, name: 'proxy', namespace: 'default' } }
    return patchOf(object, shape, 0).map((patch) => ({ kind, object, patch }))
  })
})
