import { exactlyOneOf, mapChildren, ref, refName, type Definitions, type Schema } from '../schema.ts'
import { mcpGrpcDefinitions } from './mcp-grpc.ts'
import { mcpOpenApiDefinitions } from './mcp-openapi.ts'
import { priceCatalogDefinitions } from './price-catalog.ts'
import { list, object, port, string } from './shared.ts'

const invalid = string('Why the reference does not resolve, for logs. Features that need it fail closed.')
const oneOf = (schema: Schema, ...fields: string[]): Schema => ({ ...schema, 'x-kubernetes-validations': [exactlyOneOf(...fields)] })

/** Definitions that replace the API's references to other objects in the config: results of the operator's lookup. */
export const resolvedDefinitions: Definitions = {
  ResolvedSecret: oneOf(
    object('A Secret or ConfigMap, as a message: exactly one of secret, invalid.', {
      secret: string('Key of a Secret message: opaque for credentials, tls for certificates, ca for trust anchors.'),
      invalid,
    }),
    'secret',
    'invalid',
  ),
  ResolvedSecretKey: oneOf(
    object('An entry of a Secret: exactly one of secret, invalid.', {
      secret: string('Key of a Secret message of type opaque.'),
      key: string('Entry of the Secret.'),
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
  ResolvedPluginSource: oneOf(
    object('The source of a plugin: exactly one of code, invalid.', {
      code: string('TypeScript or JavaScript.'),
      file: string('Name of the source in error messages: `<namespace>/<ConfigMap>/<key>`.'),
      owner: string('`<namespace>/<name>` of the policy.'),
      digest: string('SHA-256 of the code, in hex.'),
      denied: { type: 'boolean', description: 'Whether a permission is missing. A version that ran before ends. Only with invalid.' },
      invalid,
    }),
    'code',
    'invalid',
  ),
  ResolvedText: oneOf(object('A text of a ConfigMap: exactly one of text, invalid.', { text: string('The text.'), invalid }), 'text', 'invalid'),
  ResolvedKeySet: oneOf(
    object('A key set that the operator fetched: exactly one of inline, invalid.', {
      inline: string('JSON Web Key Set as text.'),
      invalid,
      from: ref('BackendRef', 'Backend that it was fetched from; MCP authentication fetches other documents from there.'),
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
            sessionsOnly: {
              type: 'boolean',
              description: 'Whether clients without sessions get one of the gateway, whatever the server speaks. Default: false.',
            },
          },
          ['name', 'service', 'port', 'protocol'],
        ),
        'Servers. Empty: 503.',
      ),
    },
    ['targets'],
  ),
  ResolvedMcpToolPins: object(
    'Pins of the tools of an MCP backend.',
    {
      pins: string('The document of pins, in JSON. Default: no pins.'),
      action: { type: 'string', enum: ['Audit', 'Hold', 'Block'], description: 'Handling of new and changed tools.' },
      invalid: string('Why there are no pins, for logs. No tool is approved.'),
    },
    ['action'],
  ),
  ...mcpGrpcDefinitions,
  ...mcpOpenApiDefinitions,
  ...priceCatalogDefinitions,
}

/** Definition of the API -> its replacement in the config. */
const replacements: Readonly<Record<string, string>> = {
  BackendObjectReference: 'BackendRef',
  AIModelBackendReference: 'BackendRef',
  SecretReference: 'ResolvedSecret',
  SecretKeyReference: 'ResolvedSecretKey',
  ConfigMapReference: 'ResolvedSecret',
  PluginConfigMapReference: 'ResolvedPluginSource',
  ResponseBodyReference: 'ResolvedText',
  SecretSelector: 'ResolvedSecrets',
  RemoteJWKS: 'ResolvedKeySet',
  McpSelector: 'ResolvedMcpTargets',
  McpOpenApi: 'ResolvedMcpOpenApi',
  McpGrpc: 'ResolvedMcpGrpc',
  PriceCatalogReference: 'ResolvedPriceCatalog',
  McpToolPins: 'ResolvedMcpToolPins',
}

/** Replaces every reference to another object by its resolved form. */
export function resolveReferences(definitions: Definitions): Definitions {
  const rewire = (schema: Schema): Schema => {
    const replacement = schema.$ref === undefined ? undefined : replacements[refName(schema.$ref)]
    return replacement === undefined ? mapChildren(schema, rewire) : ref(replacement, schema.description)
  }
  const kept = Object.entries(definitions).filter(([name]) => !(name in replacements))
  return Object.fromEntries(kept.map(([name, schema]) => [name, rewire(schema)]))
}
