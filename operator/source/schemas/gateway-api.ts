import type { Schema } from '#api/schema.ts'
import generated from '#gen/gateway-api/schemas.json' with { type: 'json' }
import { envelope } from './shared.ts'

const written = generated as unknown as {
  readonly kinds: Readonly<Record<string, Readonly<Record<string, Schema>>>>
  readonly $defs: Readonly<Record<string, Schema>>
}
const linked = new Map<string, object>()

/** `node` with its references resolved: a schema that is used several times is one object. */
function link(node: unknown): unknown {
  if (typeof node !== 'object' || node === null) return node
  if (Array.isArray(node)) return node.map(link)
  const { $ref } = node as Schema
  if ($ref === undefined) return Object.fromEntries(Object.entries(node).map(([name, child]) => [name, link(child)]))
  const known = linked.get($ref) ?? (link(written.$defs[$ref]) as object)
  linked.set($ref, known)
  return known
}

/** Schemas of each version of the kinds of Gateway API and its Inference Extension, from their CRDs. */
export const versions = new Map(
  Object.entries(written.kinds).map(([kind, schemas]) => [
    kind,
    new Map(Object.entries(schemas).map(([version, spec]) => [version, envelope({ 'spec!': link(spec) as Schema })])),
  ]),
)
