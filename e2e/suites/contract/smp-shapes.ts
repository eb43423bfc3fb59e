/** The fields of an OpenAPI v2 schema that are read here. */
interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly items?: Schema
  readonly additionalProperties?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly 'x-kubernetes-patch-merge-key'?: string
  readonly 'x-kubernetes-patch-strategy'?: string
}

const roots = [
  'io.k8s.api.apps.v1.Deployment',
  'io.k8s.api.core.v1.Service',
  'io.k8s.api.core.v1.ServiceAccount',
  'io.k8s.api.policy.v1.PodDisruptionBudget',
  'io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler',
]
const scalars: Readonly<Record<string, string>> = { Quantity: 'quantity', IntOrString: 'intstr', Time: 'string', MicroTime: 'string' }
const shortName = (ref: string): string => ref.slice(ref.lastIndexOf('.') + 1)

/** Converts the schemas of patched kinds in /openapi/v2 to the notation of operator/deploy/patch/shapes.ts. */
export function readShapes(openapi: Readonly<Record<string, unknown>>): Record<string, string> {
  const definitions = openapi['definitions'] as Readonly<Record<string, Schema>>
  const found: Record<string, string> = {}

  const typeOf = (schema: Schema): string => {
    if (schema.$ref !== undefined) {
      const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1)
      const scalar = scalars[shortName(name)]
      if (scalar === undefined) visit(name)
      return scalar ?? shortName(name)
    }
    if (schema.items) return `[${typeOf(schema.items)}]`
    if (schema.additionalProperties) return `{${typeOf(schema.additionalProperties)}}`
    return schema.type ?? 'object'
  }
  const visit = (name: string): void => {
    if (shortName(name) in found) return
    found[shortName(name)] = ''
    const fields = Object.entries(definitions[name]?.properties ?? {}).filter(([field]) => field !== 'status' || !roots.includes(name))
    found[shortName(name)] = fields
      .map(([field, schema]) => {
        const key = schema['x-kubernetes-patch-merge-key']
        const strategy = schema['x-kubernetes-patch-strategy']
        return `${field}:${typeOf(schema)}${key === undefined ? '' : `@${key}`}${strategy === undefined ? '' : `!${strategy}`}`
      })
      .join(' ')
  }
  for (const root of roots) visit(root)
  return found
}
