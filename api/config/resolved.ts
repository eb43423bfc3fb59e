import { exactlyOneOf, mapChildren, ref, refName, type Definitions, type Schema } from '../schema.ts'
import { list, object, port, string } from './shared.ts'

const invalid = string('Why the reference does not resolve. Whatever needs it fails closed; the text is for logs.')
const oneOf = (schema: Schema, ...fields: string[]): Schema => ({ ...schema, 'x-kubernetes-validations': [exactlyOneOf(...fields)] })

/** What stands in the config where the API has a reference to another object: the operator has looked it up. */
export const resolvedDefinitions: Definitions = {
  ResolvedSecret: oneOf(
    object('A Secret or ConfigMap, as a message: exactly one of secret, invalid.', {
      secret: string('Key of a Secret message: opaque for credentials, tls for certificates, ca for trust anchors.'),
      invalid,
    }),
    'secret',
    'invalid',
  ),
  ResolvedSecrets: object(
    'The Secrets that a selector matches.',
    { secrets: list(string('Key of a Secret message.'), 'Secrets. Empty: no credential is valid.') },
    ['secrets'],
  ),
  ResolvedKeySet: oneOf(
    object('A key set that the operator fetched: exactly one of inline, invalid.', {
      inline: string('JSON Web Key Set as text.'),
      invalid,
      from: ref('BackendRef', 'Where it was fetched, for who needs other documents of the same host (MCP authentication).'),
    }),
    'inline',
    'invalid',
  ),
  ResolvedMcpTargets: object(
    'The MCP servers that a selector matches.',
    {
      targets: list(
        object(
          'One MCP server.',
          {
            name: string('Name, unique in the backend.'),
            service: string('Key of a Service message.'),
            port: port('Port of the Service.'),
            path: string('Path; default /mcp, or /sse for SSE.'),
            protocol: { type: 'string', enum: ['StreamableHTTP', 'SSE'], description: 'Transport.' },
          },
          ['name', 'service', 'port', 'protocol'],
        ),
        'Servers. Empty: 503.',
      ),
    },
    ['targets'],
  ),
}

/** API definition -> what replaces it in the config. */
const replacements: Readonly<Record<string, string>> = {
  BackendObjectReference: 'BackendRef',
  SecretReference: 'ResolvedSecret',
  ConfigMapReference: 'ResolvedSecret',
  SecretSelector: 'ResolvedSecrets',
  RemoteJWKS: 'ResolvedKeySet',
  McpSelector: 'ResolvedMcpTargets',
}

/** The API's definitions with every reference to another object replaced by its resolved form. */
export function resolveReferences(definitions: Definitions): Definitions {
  const rewire = (schema: Schema): Schema => {
    const replacement = schema.$ref === undefined ? undefined : replacements[refName(schema.$ref)]
    return replacement === undefined ? mapChildren(schema, rewire) : ref(replacement, schema.description)
  }
  const kept = Object.entries(definitions).filter(([name]) => !(name in replacements))
  return Object.fromEntries(kept.map(([name, schema]) => [name, rewire(schema)]))
}
