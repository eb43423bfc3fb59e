import { stringify } from 'yaml'
import { GROUP, VERSION } from '../names.ts'
import { anyObject, mapChildren, refName, type Definitions, type Schema } from '../schema.ts'
import type { Kind } from '../v1alpha1/kinds.ts'
import { isNeutralName } from '../v1alpha1/real-names.ts'
import { withoutExclusiveDefaults } from './exclusivity.ts'

/**
 * Definitions without descriptions of their fields in the manifests. They are inlined about ten times, and a manifest must not exceed
 * the 262144 bytes that `kubectl apply` stores in an annotation. `spec.policies` describes the same fields.
 */
const TERSE: ReadonlySet<string> = new Set(['BackendSimple', 'BackendWithMCP', 'BackendWithAI'])

/**
 * Definitions that the manifest of a kind does not describe, because it would be too large. The operator checks them
 * (operator/translate/reference).
 */
const OPAQUE: Readonly<Record<string, ReadonlyMap<string, string>>> = {
  ProxyBackend: new Map(['JWTSign', 'LoadBalancer', 'McpToolGuards', 'OAuthCredentials'].map((name) => [name, 'As in ProxyPolicy.'])),
  // Connections of guards.
  ProxyPolicy: new Map([['BackendSimple', 'As in `spec.policies` of ProxyBackend.']]),
}
/** Definitions whose fields are described elsewhere in the manifest: treated as fields under neutral names. */
const REPEATED: ReadonlySet<string> = new Set(['McpToolGuards'])

/**
 * Converts a schema to a structural one: inlines references, and drops `additionalProperties: false`, since the API server prunes unknown fields.
 *
 * Fields that are others under their neutral names have no descriptions inside. The connection policies of guards have no schema there and in terse definitions:
 * written out, these would double the size of a manifest. The operator checks them, and a guard with invalid ones rejects everything (operator/translate/reference).
 */
export function toStructural(definitions: Definitions, schema: Schema, opaque: ReadonlyMap<string, string> = new Map()): Schema {
  // `depth`: level within a terse definition, where nested fields have no descriptions.
  const inline = (child: Schema, depth: number | undefined, isRepeated: boolean): Schema => {
    const name = child.$ref === undefined ? undefined : refName(child.$ref)
    const isAnother = isRepeated || isNeutralName(child) || (name !== undefined && REPEATED.has(name))
    if (name === 'BackendSimple' && isRepeated) return anyObject('As under the real name.')
    if (name === 'BackendSimple' && depth !== undefined) return anyObject('As in `spec.policies`.')
    const elsewhere = name === undefined ? undefined : opaque.get(name)
    if (elsewhere !== undefined) return anyObject(elsewhere)
    const { description, ...silent } = structural(
      name === undefined ? child : dereference(definitions, child),
      isAnother ? 1 : (depth ?? (name !== undefined && TERSE.has(name) ? 0 : undefined)),
      isAnother,
    )
    return description === undefined || isRepeated || (depth !== undefined && depth > 1) ? silent : { description, ...silent }
  }
  const structural = (node: Schema, depth: number | undefined, isRepeated: boolean): Schema => {
    const copy = mapChildren(withoutExclusiveDefaults(node), (child) => inline(child, depth === undefined ? undefined : depth + 1, isRepeated))
    if (copy.additionalProperties === false) delete copy.additionalProperties
    return copy
  }
  return inline(schema, undefined, false)
}

/** The definition that a reference points to, merged with the siblings of the reference. */
export function dereference(definitions: Definitions, { $ref, 'x-kubernetes-validations': own = [], ...use }: Schema): Schema {
  const target = definitions[refName($ref ?? '')]
  if (!target) throw new Error(`${$ref} does not exist`)
  const rules = [...(target['x-kubernetes-validations'] ?? []), ...own]
  return { ...target, ...use, ...(rules.length > 0 ? { 'x-kubernetes-validations': rules } : {}) }
}

/** The schema of a kind for the API server, which validates `metadata` itself. `status` is not required. */
export function toOpenApi(definitions: Definitions, kind: Kind): Schema {
  const root = definitions[kind.kind]
  if (!root?.properties) throw new Error(`definition ${kind.kind} does not exist`)
  const { spec, status } = root.properties
  const opaque = OPAQUE[kind.kind]
  return {
    description: root.description ?? '',
    type: 'object',
    properties: {
      apiVersion: { type: 'string', description: 'Version of the schema of this object.' },
      kind: { type: 'string', description: 'Kind of this object.' },
      metadata: { type: 'object' },
      spec: toStructural(definitions, spec ?? {}, opaque),
      status: toStructural(definitions, status ?? {}, opaque),
    },
    required: ['spec'],
  }
}

/** The CustomResourceDefinition of a kind as YAML. */
export function toCrd(definitions: Definitions, kind: Kind): string {
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    // Uninstalling the chart must not delete every object of the kind.
    metadata: { name: `${kind.plural}.${GROUP}`, labels: kind.labels, annotations: { 'helm.sh/resource-policy': 'keep' } },
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
  // kubectl and Helm read YAML 1.1, where `on` and `off` without quotes are booleans.
  return `# Written by \`make generate\`. Do not edit.\n${stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false, version: '1.1' })}`
}
