import type { Json, Schema, ValidationRule } from '#api/schema.ts'
import { validate } from '../validate.ts'
import { versions } from './gateway-api.ts'

type Fields = Record<string, Json>
type Step = { readonly field: string } | 'item' | 'entry'

/** A place of a schema: the way to it from `spec`. */
export interface Place {
  readonly kind: string
  readonly version: string
  readonly path: readonly Step[]
  readonly schema: Schema
}

/** An object with one value that a constraint of its schema forbids. */
export interface Sample {
  readonly title: string
  readonly object: { readonly apiVersion: string; readonly kind: string; readonly metadata: Fields; readonly spec: Json }
}

const groupOf = (kind: string): string => (kind === 'InferencePool' ? 'inference.networking.k8s.io' : 'gateway.networking.k8s.io')
const specOf = (kind: string, version: string): Schema => versions.get(kind)?.get(version)?.properties?.['spec'] ?? {}

/** Every place of every schema. */
export function listPlaces(): Place[] {
  const places: Place[] = []
  for (const [kind, schemas] of versions) {
    const visit = (schema: Schema, version: string, path: readonly Step[]): void => {
      places.push({ kind, version, path, schema })
      for (const [field, child] of Object.entries(schema.properties ?? {})) visit(child, version, [...path, { field }])
      if (schema.items) visit(schema.items, version, [...path, 'item'])
      if (typeof schema.additionalProperties === 'object') visit(schema.additionalProperties, version, [...path, 'entry'])
    }
    for (const version of schemas.keys()) visit(specOf(kind, version), version, [])
  }
  return places
}

export const nameOf = ({ kind, version, path }: Place): string =>
  `${kind} ${version} spec${path.map((step) => (step === 'item' ? '[]' : step === 'entry' ? '{}' : `.${step.field}`)).join('')}`

const TEXTS = ['HTTP', 'a', 'a.example.com', 'example.com/a', '/a', '1s', 'https://a.example.com', 'System', '192.0.2.1']

/** A value that the schema accepts, with the required fields only. */
function example(schema: Schema): Json {
  if (schema.enum) return schema.enum[0] ?? null
  if (schema['x-kubernetes-int-or-string']) return 1
  switch (schema.type) {
    case 'string':
      return TEXTS.find((text) => validate(schema, text).issues.length === 0) ?? fail(`no example fits ${JSON.stringify(schema)}`)
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 1, Math.min(1, schema.maximum ?? 1))
    case 'boolean':
      return true
    case 'array':
      return Array.from({ length: schema.minItems ?? 0 }, () => example(schema.items ?? {}))
    default:
      return Object.fromEntries((schema.required ?? []).map((field) => [field, example(schema.properties?.[field] ?? {})]))
  }
}

function fail(message: string): never {
  throw new Error(message)
}

/** The smallest object that has `value` at a place. */
export function embed(place: Place, value: Json, title = nameOf(place)): Sample {
  const build = (schema: Schema, path: readonly Step[]): Json => {
    const [step, ...rest] = path
    if (step === undefined) return value
    if (step === 'item') return [build(schema.items ?? {}, rest)]
    if (step === 'entry') return { a: build(schema.additionalProperties as Schema, rest) }
    return { ...(example(schema) as Fields), [step.field]: build(schema.properties?.[step.field] ?? {}, rest) }
  }
  const spec = build(specOf(place.kind, place.version), place.path)
  return { title, object: { apiVersion: `${groupOf(place.kind)}/${place.version}`, kind: place.kind, metadata: { name: 'a' }, spec } }
}

/** For each constraint of a place, a value that breaks it. */
export function breakConstraints(place: Place): Sample[] {
  const { schema } = place
  const valid = example(schema)
  const samples: (readonly [constraint: string, value: Json])[] = []
  const other: Readonly<Record<string, Json>> = { string: 5, integer: 'x', number: 'x', boolean: 'x', array: {}, object: 'x' }
  if (schema.type !== undefined) samples.push(['type', other[schema.type] ?? null])
  if (schema.enum) samples.push(['enum', typeof schema.enum[0] === 'string' ? 'other' : 7])
  if (schema.pattern !== undefined) {
    const regex = new RegExp(schema.pattern)
    samples.push(['pattern', [' ', '%', ''].find((text) => !regex.test(text)) ?? fail(`every text matches ${schema.pattern}`)])
  }
  if (schema.minLength) samples.push(['minLength', ''])
  if (schema.maxLength !== undefined) samples.push(['maxLength', 'a'.repeat(schema.maxLength + 1)])
  if (schema.minimum !== undefined) samples.push(['minimum', schema.minimum - 1])
  if (schema.maximum !== undefined) samples.push(['maximum', schema.maximum + 1])
  if (schema.minItems) samples.push(['minItems', []])
  const item = example(schema.items ?? {})
  if (schema.maxItems !== undefined) samples.push(['maxItems', Array.from({ length: schema.maxItems + 1 }, () => item)])
  if (schema['x-kubernetes-list-map-keys']) samples.push(['keys', [item, item]])
  if (schema['x-kubernetes-list-type'] === 'set') samples.push(['set', [item, item]])
  if (schema.maxProperties !== undefined) {
    const entry = example(schema.additionalProperties as Schema)
    samples.push(['maxProperties', Object.fromEntries(Array.from({ length: schema.maxProperties + 1 }, (_, index) => [`k${index}`, entry]))])
  }
  if (schema.properties) {
    samples.push(['unknown field', { ...(valid as Fields), nowhere: 1 }])
    for (const field of schema.required ?? []) {
      if (schema.properties[field]?.default !== undefined) continue
      samples.push([`required ${field}`, Object.fromEntries(Object.entries(valid as Fields).filter(([name]) => name !== field))])
    }
  }
  if (schema.oneOf) samples.push(['oneOf', { type: 'IPAddress', value: 'nonsense' }], ['oneOf', { type: 'IPAddress', value: '' }])
  return samples.map(([constraint, value]) => embed(place, value, `${nameOf(place)}: ${constraint}`))
}

/** Objects with each optional field alone, and two of each item: valid or not, as the rules decide. */
export function listVariants(place: Place): Sample[] {
  const { schema } = place
  const fields = Object.entries(schema.properties ?? {}).filter(([field]) => !schema.required?.includes(field))
  const alone = fields.map(([field, child]) => embed(place, { ...(example(schema) as Fields), [field]: example(child) }, `${nameOf(place)} with ${field}`))
  const choices = (schema.enum ?? []).map((value) => embed(place, value, `${nameOf(place)} is ${JSON.stringify(value)}`))
  if (!schema.items) return [...alone, ...choices]
  return [...alone, ...choices, embed(place, [example(schema.items), example(schema.items)], `${nameOf(place)} twice`)]
}

export interface BrokenRule {
  readonly place: Place
  readonly rule: ValidationRule
  /** Undefined if `selves` has none. */
  readonly self: Json | undefined
}

export const listRules = (): BrokenRule[] =>
  listPlaces().flatMap((place) => (place.schema['x-kubernetes-validations'] ?? []).map((rule) => ({ place, rule, self: selves[rule.message] })))

const header = { set: [{ name: 'a', value: 'b' }] }
const mirror = { backendRef: { name: 'a', port: 1 } }
const extension = { group: 'example.com', kind: 'A', name: 'a' }
const redirect = { type: 'RequestRedirect', requestRedirect: { port: 81 } }
const rewrite = { type: 'URLRewrite', urlRewrite: { hostname: 'a.example.com' } }
const authentication = { protocol: 'HTTP', backendRef: { name: 'a', port: 1 }, http: {} }
const prefix = { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/b' } }
const prefixRedirect = { type: 'RequestRedirect', requestRedirect: prefix }
const prefixRewrite = { type: 'URLRewrite', urlRewrite: prefix }
const exact = [{ path: { type: 'Exact', value: '/a' } }]
const parent = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'g' }
const target = { group: '', kind: 'Service', name: 's' }
const path = (value: string): Json => ({ type: 'PathPrefix', value })
const listener = (more: Fields): Json[] => [{ name: 'a', port: 80, protocol: 'HTTP', ...more }]
const twice = (value: Json): Json => [value, value]
const long = `${'a.'.repeat(130)}example.com/a`

/** For each rule, by its message, a `self` that breaks it. */
const selves: Readonly<Record<string, Json>> = {
  'While 16 rules and 64 matches per rule are allowed, the total number of matches across all rules in a route must be less than 128': Array.from(
    { length: 3 },
    () => ({ matches: Array.from({ length: 43 }, () => ({})) }),
  ),
  'Rule name must be unique within the route': twice({ name: 'a', backendRefs: [{ group: '', kind: 'Service', name: 's', port: 80 }] }),
  'Must have port for Service reference': { group: '', kind: 'Service', name: 's' },
  "One or both of 'service' or 'method' must be specified": { type: 'Exact' },
  'service must only contain valid characters (matching ^(?i)\\.?[a-z_][a-z_0-9]*(\\.[a-z_][a-z_0-9]*)*$)': { type: 'Exact', service: 'a b' },
  'method must only contain valid characters (matching ^[A-Za-z_][A-Za-z_0-9]*$)': { type: 'Exact', method: 'a.b' },
  "port is required when kind is 'Service' or unspecified (defaults to 'Service')": { group: '', kind: 'Service', name: 'picker', failureMode: 'FailOpen' },
  'port number must be unique': twice({ number: 80 }),
  "tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']": listener({ tls: { mode: 'Passthrough' } }),
  'tls mode must be Terminate for protocol HTTPS': listener({ protocol: 'HTTPS', tls: { mode: 'Passthrough' } }),
  'tls mode must be set for protocol TLS': listener({ protocol: 'TLS' }),
  "hostname must not be specified for protocols ['TCP', 'UDP']": listener({ protocol: 'TCP', hostname: 'a.example.com' }),
  'Listener name must be unique within the Gateway': [...listener({}), ...listener({ port: 81 })],
  'Combination of port, protocol and hostname must be unique for each listener': [...listener({}), ...listener({ name: 'b' })],
  'sectionName must be specified when targetRefs includes 2 or more references to the same target': [target, { ...target, sectionName: 'a' }],
  'sectionName must be unique when targetRefs includes 2 or more references to the same target': twice(target),
  'must not contain both CACertificateRefs and WellKnownCACertificates': {
    hostname: 'a.example.com',
    wellKnownCACertificates: 'System',
    caCertificateRefs: [{ group: '', kind: 'ConfigMap', name: 'a' }],
  },
  'must specify either CACertificateRefs or WellKnownCACertificates': { hostname: 'a.example.com' },
  'SubjectAltName element must contain Hostname, if Type is set to Hostname': { type: 'Hostname' },
  'SubjectAltName element must not contain Hostname, if Type is not set to Hostname': { type: 'URI', uri: 'https://a', hostname: 'a' },
  'SubjectAltName element must contain URI, if Type is set to URI': { type: 'URI' },
  'SubjectAltName element must not contain URI, if Type is not set to URI': { type: 'Hostname', hostname: 'a', uri: 'https://a' },
  'sectionName or port must be specified when parentRefs includes 2 or more references to the same parent': [parent, { ...parent, sectionName: 'a' }],
  'sectionName or port must be unique when parentRefs includes 2 or more references to the same parent': twice(parent),
  'RequestHeaderModifier filter cannot be repeated': twice({ type: 'RequestHeaderModifier', requestHeaderModifier: header }),
  'ResponseHeaderModifier filter cannot be repeated': twice({ type: 'ResponseHeaderModifier', responseHeaderModifier: header }),
  'CORS filter cannot be repeated': twice({ type: 'CORS', cors: {} }),
  'RequestRedirect filter cannot be repeated': twice(redirect),
  'URLRewrite filter cannot be repeated': twice(rewrite),
  ...Object.fromEntries(
    (
      [
        ['requestHeaderModifier', 'RequestHeaderModifier', header],
        ['responseHeaderModifier', 'ResponseHeaderModifier', header],
        ['requestMirror', 'RequestMirror', mirror],
        ['extensionRef', 'ExtensionRef', extension],
        ['cors', 'CORS', {}],
        ['requestRedirect', 'RequestRedirect', redirect.requestRedirect],
        ['urlRewrite', 'URLRewrite', rewrite.urlRewrite],
        ['externalAuth', 'ExternalAuth', authentication],
      ] as const
    ).flatMap(([field, type, settings]): [string, Json][] => [
      [
        `filter.${field} must be nil if the filter.type is not ${type}`,
        field === 'extensionRef'
          ? { type: 'RequestMirror', requestMirror: mirror, extensionRef: extension }
          : { type: 'ExtensionRef', extensionRef: extension, [field]: settings },
      ],
      [`filter.${field} must be specified for ${type} filter.type`, { type }],
    ]),
  ),
  'Only one of percent or fraction may be specified in HTTPRequestMirrorFilter': { ...mirror, percent: 1, fraction: { numerator: 1, denominator: 100 } },
  'numerator must be less than or equal to denominator': { numerator: 2, denominator: 1 },
  'AbsoluteTimeout must be specified when cookie lifetimeType is Permanent': { type: 'Cookie', cookieConfig: { lifetimeType: 'Permanent' } },
  'cookieConfig can only be set with type Cookie': { type: 'Header', cookieConfig: { lifetimeType: 'Session' } },
  'IPAddress values must be unique': twice({ type: 'IPAddress', value: '192.0.2.1' }),
  'Hostname values must be unique': twice({ type: 'Hostname', value: 'a.example.com' }),
  'Hostname value must be empty or contain only valid characters (matching ^(\\*\\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$)': {
    type: 'Hostname',
    value: 'a b',
  },
  'Annotation keys must be in the form of an optional DNS subdomain prefix followed by a required name segment of up to 63 characters.': { 'a b': 'c' },
  "If specified, the annotation key's prefix must be a DNS subdomain not longer than 253 characters in total.": { [long]: 'c' },
  'Label keys must be in the form of an optional DNS subdomain prefix followed by a required name segment of up to 63 characters.': { 'a b': 'c' },
  "If specified, the label key's prefix must be a DNS subdomain not longer than 253 characters in total.": { [long]: 'c' },
  'Port for TLS configuration must be unique within the Gateway': twice({ port: 443, tls: {} }),
  'certificateRefs or options must be specified when mode is Terminate': { mode: 'Terminate', certificateRefs: [] },
  'RequestRedirect filter must not be used together with backendRefs': {
    filters: [redirect],
    backendRefs: [{ group: '', kind: 'Service', name: 's', port: 80 }],
  },
  'When using RequestRedirect filter with path.replacePrefixMatch, exactly one PathPrefix match must be specified': {
    matches: exact,
    filters: [prefixRedirect],
  },
  'When using URLRewrite filter with path.replacePrefixMatch, exactly one PathPrefix match must be specified': { matches: exact, filters: [prefixRewrite] },
  'Within backendRefs, when using RequestRedirect filter with path.replacePrefixMatch, exactly one PathPrefix match must be specified': {
    matches: exact,
    backendRefs: [{ group: '', kind: 'Service', name: 's', port: 80, filters: [prefixRedirect] }],
  },
  'Within backendRefs, When using URLRewrite filter with path.replacePrefixMatch, exactly one PathPrefix match must be specified': {
    matches: exact,
    backendRefs: [{ group: '', kind: 'Service', name: 's', port: 80, filters: [prefixRewrite] }],
  },
  "value must be an absolute path and start with '/' when type one of ['Exact', 'PathPrefix']": path('a'),
  "must not contain '//' when type one of ['Exact', 'PathPrefix']": path('/a//b'),
  "must not contain '/./' when type one of ['Exact', 'PathPrefix']": path('/a/./b'),
  "must not contain '/../' when type one of ['Exact', 'PathPrefix']": path('/a/../b'),
  "must not contain '%2f' when type one of ['Exact', 'PathPrefix']": path('/a%2fb'),
  "must not contain '%2F' when type one of ['Exact', 'PathPrefix']": path('/a%2Fb'),
  "must not contain '#' when type one of ['Exact', 'PathPrefix']": path('/a#b'),
  "must not end with '/..' when type one of ['Exact', 'PathPrefix']": path('/a/..'),
  "must not end with '/.' when type one of ['Exact', 'PathPrefix']": path('/a/.'),
  "type must be one of ['Exact', 'PathPrefix', 'RegularExpression']": { type: 'Prefix', value: '/a' },
  "must only contain valid characters (matching ^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$) for types ['Exact', 'PathPrefix']": path('/a b'),
  'backendRequest timeout cannot be longer than request timeout': { request: '1s', backendRequest: '1001ms' },
  'May specify either httpRouteFilterRequestRedirect or httpRouteFilterRequestRewrite, but not both': [redirect, rewrite],
  "AllowHeaders cannot contain '*' alongside other methods": ['*', 'a'],
  "AllowMethods cannot contain '*' alongside other methods": ['*', 'GET'],
  "AllowOrigins cannot contain '*' alongside other origins": ['*', 'https://a.example.com'],
  "grpc must be specified when protocol is set to 'GRPC'": { protocol: 'GRPC', backendRef: { name: 'a', port: 1 } },
  "protocol must be 'GRPC' when grpc is set": { ...authentication, grpc: {} },
  "http must be specified when protocol is set to 'HTTP'": { protocol: 'HTTP', backendRef: { name: 'a', port: 1 } },
  "protocol must be 'HTTP' when http is set": { protocol: 'GRPC', backendRef: { name: 'a', port: 1 }, grpc: {}, http: {} },
  "replaceFullPath must be specified when type is set to 'ReplaceFullPath'": { type: 'ReplaceFullPath' },
  "type must be 'ReplaceFullPath' when replaceFullPath is set": { ...prefix.path, replaceFullPath: '/a' },
  "replacePrefixMatch must be specified when type is set to 'ReplacePrefixMatch'": { type: 'ReplacePrefixMatch' },
  "type must be 'ReplacePrefixMatch' when replacePrefixMatch is set": { type: 'ReplaceFullPath', replaceFullPath: '/a', replacePrefixMatch: '/b' },
  'Hostnames cannot contain an IP': ['192.0.2.1'],
  'Hostnames must be valid based on RFC-1123': ['a_b'],
  'Wildcards on hostnames must be the first label, and the rest of hostname must be valid based on RFC-1123': ['a.*.example.com'],
}
