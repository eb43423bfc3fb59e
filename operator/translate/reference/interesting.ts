import { refName, type Schema } from '#api/schema.ts'
import { definitions } from '#api/v1alpha1/definitions.ts'

/** Definitions that are replaced as a whole. */
export const leaves = new Set([
  'BackendObjectReference',
  'AIModelBackendReference',
  'SecretReference',
  'SecretKeyReference',
  'ConfigMapReference',
  'SecretSelector',
  'RemoteJWKS',
  'McpSelector',
  'CELExpression',
  'PluginConfigMapReference',
  'ResponseBodyReference',
  'McpOpenApi',
  'McpGrpc',
  'PriceCatalogReference',
  'McpToolPins',
])
/** Definitions with a check of their own besides the references in them. */
export const checked = new Set([
  'Budget',
  'JWKS',
  'Regex',
  'BackendTLS',
  'BasicAuthentication',
  'AgentRuntime',
  'LoadBalancer',
  'PluginSource',
  'McpTargetSelector',
])

/** Definitions that hold a reference or an expression somewhere; all others are passed on as they are. */
export const interesting = findInteresting()

function findInteresting(): ReadonlySet<string> {
  const found = new Set([...leaves, ...checked])
  const holds = (schema: Schema): boolean =>
    (schema.$ref !== undefined && found.has(refName(schema.$ref))) ||
    Object.values(schema.properties ?? {}).some(holds) ||
    (schema.items !== undefined && holds(schema.items)) ||
    (typeof schema.additionalProperties === 'object' && holds(schema.additionalProperties))
  let size = 0
  while (size !== found.size) {
    size = found.size
    for (const [name, schema] of Object.entries(definitions)) if (holds(schema)) found.add(name)
  }
  return found
}
