import { isJsonObject, type JsonObject } from '#api/json/index.ts'

/** The form of a member of a card. `flag`: a boolean whose default is not written. */
type Shape = 'value' | 'flag' | { readonly list: Shape } | { readonly map: Shape } | { readonly fields: Readonly<Record<string, Shape>> }

const values = (...names: string[]): Record<string, Shape> => Object.fromEntries(names.map((name) => [name, 'value']))
const fields = (members: Record<string, Shape>): Shape => ({ fields: members })

const requirements: Shape = { list: fields({ schemes: { map: fields(values('list')) } }) }
const flow = (...names: string[]): Shape => fields(values('tokenUrl', 'refreshUrl', 'scopes', ...names))
const flows = fields({
  authorizationCode: fields({ ...values('authorizationUrl', 'tokenUrl', 'refreshUrl', 'scopes'), pkceRequired: 'flag' }),
  clientCredentials: flow(),
  implicit: fields(values('authorizationUrl', 'refreshUrl', 'scopes')),
  password: flow(),
  deviceCode: flow('deviceAuthorizationUrl'),
})
const scheme = fields({
  apiKeySecurityScheme: fields(values('description', 'location', 'name')),
  httpAuthSecurityScheme: fields(values('description', 'scheme', 'bearerFormat')),
  oauth2SecurityScheme: fields({ ...values('description', 'oauth2MetadataUrl'), flows }),
  openIdConnectSecurityScheme: fields(values('description', 'openIdConnectUrl')),
  mtlsSecurityScheme: fields(values('description')),
})

/** AgentCard of A2A 1.0 without `signatures` (a2a.proto). */
const card = fields({
  ...values('name', 'description', 'version', 'documentationUrl', 'defaultInputModes', 'defaultOutputModes', 'iconUrl'),
  supportedInterfaces: { list: fields(values('url', 'protocolBinding', 'tenant', 'protocolVersion')) },
  provider: fields(values('url', 'organization')),
  capabilities: fields({
    ...values('streaming', 'pushNotifications', 'extendedAgentCard'),
    extensions: { list: fields({ ...values('uri', 'description', 'params'), required: 'flag' }) },
  }),
  securitySchemes: { map: scheme },
  securityRequirements: requirements,
  skills: { list: fields({ ...values('id', 'name', 'description', 'tags', 'examples', 'inputModes', 'outputModes'), securityRequirements: requirements }) },
})

/**
 * The text of a card that signatures are for: RFC 8785 of the members that A2A 1.0 defines, without `signatures`, defaults and empty values (A2A 1.0, section 8.4.1).
 * Members that the version does not define are not signed.
 */
export function canonicalCard(value: JsonObject): string {
  // Numbers that are kept as written become doubles, as RFC 8785 demands.
  const plain: unknown = JSON.parse(JSON.stringify(value))
  return serialize(reduce(plain, card) ?? {})
}

/** The value with the members of the shape; undefined if nothing is left. */
function reduce(value: unknown, shape: Shape): unknown {
  if (shape === 'value') return withoutEmpty(value)
  if (shape === 'flag') return value === false ? undefined : withoutEmpty(value)
  if ('list' in shape) return Array.isArray(value) ? orNone(value.map((one) => reduce(one, shape.list)).filter((one) => one !== undefined)) : undefined
  if (!isJsonObject(value)) return undefined
  const names = 'map' in shape ? Object.keys(value) : Object.keys(shape.fields).filter((name) => Object.hasOwn(value, name))
  return objectOf(names, (name) => reduce(value[name], 'map' in shape ? shape.map : (shape.fields[name] ?? 'value')))
}

function withoutEmpty(value: unknown): unknown {
  if (value === null || value === '' || value === undefined) return undefined
  if (Array.isArray(value)) return orNone(value.map(withoutEmpty).filter((one) => one !== undefined))
  return isJsonObject(value) ? objectOf(Object.keys(value), (name) => withoutEmpty(value[name])) : value
}

const orNone = (list: unknown[]): unknown[] | undefined => (list.length === 0 ? undefined : list)

function objectOf(names: readonly string[], read: (name: string) => unknown): unknown {
  const entries = names.map((name): [string, unknown] => [name, read(name)]).filter(([, one]) => one !== undefined)
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/** RFC 8785: members in the order of their UTF-16 code units, no white space. */
function serialize(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(serialize).join(',')}]`
  if (!isJsonObject(value)) return JSON.stringify(value)
  const members = Object.keys(value).sort()
  return `{${members.map((name) => `${JSON.stringify(name)}:${serialize(value[name])}`).join(',')}}`
}
