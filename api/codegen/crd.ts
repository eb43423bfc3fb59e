import { stringify } from 'yaml'
import { GROUP, VERSION } from '../names.ts'
import { mapChildren, refName, type Definitions, type Schema } from '../schema.ts'
import type { Kind } from '../v1alpha1/kinds.ts'
import { readExclusivity } from './exclusivity.ts'

/**
 * Definitions whose fields carry no descriptions in the manifests: ten copies of each would push a manifest beyond the
 * 262144 bytes that `kubectl apply` keeps in an annotation. Their fields are described at `spec.policies`.
 */
const TERSE: ReadonlySet<string> = new Set(['BackendSimple'])

/**
 * A definition as a structural schema: references inlined, no `additionalProperties: false` (the API server prunes).
 *
 * Defaults of fields of which one must be set stay out: the API server fills defaults in before it looks at the rules,
 * and would so make `{}` valid. They are documented, and the reader applies them.
 */
export function toStructural(definitions: Definitions, schema: Schema): Schema {
  const inline = (child: Schema, isTerse: boolean): Schema => {
    if (child.$ref === undefined) return structural(child, isTerse)
    const name = refName(child.$ref)
    const target = definitions[name]
    if (!target) throw new Error(`${child.$ref} does not exist`)
    const { $ref: _, 'x-kubernetes-validations': own, ...use } = child
    const rules = [...(target['x-kubernetes-validations'] ?? []), ...(own ?? [])]
    const whole = { ...target, ...use, ...(rules.length > 0 ? { 'x-kubernetes-validations': rules } : {}) }
    const { description, ...silent } = structural(whole, isTerse || TERSE.has(name))
    return isTerse || description === undefined ? silent : { description, ...silent }
  }
  const structural = (node: Schema, isTerse: boolean): Schema => {
    const exclusive = (node['x-kubernetes-validations'] ?? []).flatMap((rule) => readExclusivity(rule)?.fields ?? [])
    const copy = mapChildren(node, (child) => {
      const { description, ...silent } = inline(child, isTerse)
      return isTerse || description === undefined ? silent : { description, ...silent }
    })
    if (copy.additionalProperties === false) delete copy.additionalProperties
    for (const field of exclusive) {
      const { default: _, ...rest } = copy.properties?.[field] ?? {}
      if (copy.properties?.[field]) copy.properties = { ...copy.properties, [field]: rest }
    }
    return copy
  }
  return inline(schema, false)
}

/** The schema of one kind as the API server wants it: `metadata` is its own business, `status` is not required. */
export function toOpenApi(definitions: Definitions, kind: Kind): Schema {
  const root = definitions[kind.kind]
  if (!root?.properties) throw new Error(`definition ${kind.kind} does not exist`)
  const { spec, status } = root.properties
  return {
    description: root.description ?? '',
    type: 'object',
    properties: {
      apiVersion: { type: 'string', description: 'Version of the schema of this object.' },
      kind: { type: 'string', description: 'Kind of this object.' },
      metadata: { type: 'object' },
      spec: toStructural(definitions, spec ?? {}),
      status: toStructural(definitions, status ?? {}),
    },
    required: ['spec'],
  }
}

/** The CustomResourceDefinition of a kind as YAML. */
export function toCrd(definitions: Definitions, kind: Kind): string {
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${GROUP}`, labels: kind.labels },
    spec: {
      group: GROUP,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.singular,
        shortNames: kind.shortNames,
        categories: kind.categories,
      },
      scope: 'Namespaced',
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          additionalPrinterColumns: kind.columns,
          schema: { openAPIV3Schema: toOpenApi(definitions, kind) },
          subresources: { status: {} },
        },
      ],
    },
  }
  return `# Written by \`make generate\`. Do not edit.\n${stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false })}`
}
