import { GATEWAY_GROUP, GROUP } from '#api/names.ts'
import { refName, type Definitions, type Json, type Schema } from '#api/schema.ts'
import { definitions } from '#api/v1alpha1/definitions.ts'

/** A field of `spec` that can name an object of another namespace. */
export interface ReferenceField {
  readonly kind: 'ProxyPolicy' | 'ProxyBackend'
  /** Path in `spec`; `[]` is an item of a list. */
  readonly path: string
  /** Definition of the reference; empty if it has none. */
  readonly definition: string
}

type Fields = Readonly<Record<string, Json>>

/** Whether values of a definition can name a namespace, by themselves or by the labels of namespaces. */
const namesNamespace = ({ properties = {} }: Schema): boolean => 'namespace' in properties || 'namespaces' in properties

/** Definitions of references to destinations, and of hosts. */
const destinations: ReadonlySet<string> = new Set(['BackendObjectReference', 'AIModelBackendReference', 'BackendRef', 'Destination', 'Host'])
const hostName = /host|ur[il]|address|addr$|endpoint|server|registry|image|authority|issuer|proxy|domain|sni|arn|region|location|origin/i
const hostText = /\b(?:host|ur[il]|address|endpoint|registry|region|image)(?:s|es)?\b/i

/** Whether a field may name a host, URL, Service or backend: by its definition, its name, its description or its pattern. */
function mayNameHost(name: string, schema: Schema, all: Definitions): boolean {
  const definition = schema.$ref === undefined ? '' : refName(schema.$ref)
  if (destinations.has(definition)) return true
  const { type, enum: choices, pattern = '', description = '' } = { ...all[definition], ...schema, ...(definition !== '' && { type: all[definition]?.type }) }
  return type === 'string' && choices === undefined && (hostName.test(name) || hostText.test(description) || pattern.includes('://'))
}

/** All fields of definitions that may name a host, URL, Service or backend, as `<definition>.<path>`; `[]` is an item of a list, `{}` a value of a map. */
export function findHostFields(all: Definitions): string[] {
  const found: string[] = []
  const walk = (schema: Schema, path: string, name: string): void => {
    if (mayNameHost(name, schema, all)) found.push(path)
    if (schema.$ref !== undefined) return
    if (schema.items !== undefined) walk(schema.items, `${path}.[]`, name)
    for (const [field, property] of Object.entries(schema.properties ?? {})) walk(property, `${path}.${field}`, field)
    if (typeof schema.additionalProperties === 'object') walk(schema.additionalProperties, `${path}.{}`, name)
  }
  // A definition of a text is not a field; fields refer to it.
  for (const [name, definition] of Object.entries(all)) if (definition.type !== 'string') walk(definition, name, '')
  return found
}

/** Fields of `schema` that can name another namespace. */
export function findReferences(root: Schema): Pick<ReferenceField, 'path' | 'definition'>[] {
  const found: Pick<ReferenceField, 'path' | 'definition'>[] = []
  const walk = (schema: Schema, path: string, within: readonly string[]): void => {
    if (schema.$ref !== undefined) {
      const name = refName(schema.$ref)
      const definition = definitions[name] ?? {}
      if (namesNamespace(definition)) found.push({ path: path.slice(1), definition: name })
      // A definition in itself adds no other kind of field.
      else if (!within.includes(name)) walk(definition, path, [...within, name])
      return
    }
    if (namesNamespace(schema)) found.push({ path: path.slice(1), definition: '' })
    if (schema.items !== undefined) walk(schema.items, `${path}.[]`, within)
    for (const [name, property] of Object.entries(schema.properties ?? {})) walk(property, `${path}.${name}`, within)
    if (typeof schema.additionalProperties === 'object') walk(schema.additionalProperties, `${path}.{}`, within)
  }
  walk(root, '', [])
  return found
}

/** All fields of a kind's `spec` that can name another namespace, found in its schema. */
export function listReferenceFields(kind: ReferenceField['kind']): ReferenceField[] {
  return findReferences({ $ref: `#/$defs/${kind}Spec` }).map((field) => ({ kind, ...field }))
}

/** Fields besides the required ones that make a value of a definition valid. */
const more: Readonly<Record<string, Fields>> = {
  BudgetLimit: { requests: 1, window: '1m' },
  ExtAuth: { grpc: {} },
  OAuthCredentials: { grantType: 'TokenExchange' },
  NamedLLMProvider: { openai: {} },
  AIModel: { to: [{ backendRef: { name: 'own' } }] },
  AIModelBackendReference: { name: 'own' },
  McpOpenApi: { url: 'https://public.example/openapi.json' },
}

/** Valid values of definitions whose patterns no filler text matches. */
const samples: Readonly<Record<string, Json>> = {
  CELExpression: 'true',
  Duration: '5m',
  LongString: 'text',
  SecretReference: { name: 'own' },
  ConfigMapReference: { name: 'own' },
  BackendObjectReference: { group: GROUP, kind: 'ProxyBackend', name: 'own' },
}

const host = { host: 'public.example', port: 80 }
/** Types of backends by the section of `policies` that they permit. */
const types: Readonly<Record<string, Fields>> = {
  '': { static: host },
  ai: { ai: { provider: { openai: {} } } },
  mcp: { mcp: { targets: [{ name: 'tools', static: host }] } },
}

function sample(schema: Schema): Json {
  if (schema.$ref !== undefined) {
    const name = refName(schema.$ref)
    return samples[name] ?? more[name] ?? sample(definitions[name] ?? {})
  }
  if (schema.default !== undefined) return schema.default
  if (schema.enum?.[0] !== undefined) return schema.enum[0]
  switch (schema.type) {
    case 'boolean':
      return true
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 1, 1)
    case 'array':
      return Array.from({ length: schema.minItems ?? 0 }, () => sample(schema.items ?? {}))
    case 'object':
      return Object.fromEntries((schema.required ?? []).map((name) => [name, sample(schema.properties?.[name] ?? {})]))
    default: {
      const text = 'x'.repeat(Math.max(schema.minLength ?? 1, 1))
      const pattern = new RegExp(schema.pattern ?? '')
      return [text, '1', 'https://public.example'].find((candidate) => pattern.test(candidate)) ?? '/'
    }
  }
}

function place(schema: Schema, steps: readonly string[], value: Json): Json {
  const [step, ...rest] = steps
  if (step === undefined) return value
  if (schema.$ref !== undefined) {
    const name = refName(schema.$ref)
    const placed = place(definitions[name] ?? {}, steps, value)
    // A model has targets or rules.
    return name in more && !(placed !== null && typeof placed === 'object' && 'rules' in placed) ? { ...more[name], ...(placed as Fields) } : placed
  }
  if (step === '[]') return [place(schema.items ?? {}, rest, value)]
  if (step === '{}') return { key: place(schema.additionalProperties as Schema, rest, value) }
  const others = (schema.required ?? []).filter((name) => name !== step).map((name) => [name, sample(schema.properties?.[name] ?? {})] as const)
  return Object.fromEntries([...others, [step, place(schema.properties?.[step] ?? {}, rest, value)]])
}

/** The smallest `spec` with `value` in the field. A policy has the Gateway `gateway` as its target. */
export function specWith({ kind, path }: ReferenceField, value: Json, gateway: string): Json {
  const spec = place({ $ref: `#/$defs/${kind}Spec` }, path.split('.'), value) as Fields
  if (kind === 'ProxyPolicy') return { ...spec, targetRefs: [{ group: GATEWAY_GROUP, kind: 'Gateway', name: gateway }] }
  const [section = '', part = ''] = path.split('.')
  return section === 'policies' ? { ...(types[part] ?? types['']), ...spec } : spec
}
