import { celEnv, isCelError, parse, plan } from '@bufbuild/cel'
import { strings } from '@bufbuild/cel/ext'
import { Ajv, type ValidateFunction } from 'ajv'
import { toOpenApi } from '#api/codegen/crd.ts'
import type { Json, Schema } from '#api/schema.ts'
import { definitions } from '#api/v1alpha1/definitions.ts'
import { kinds } from '#api/v1alpha1/kinds.ts'
import schema from '#gen/v1alpha1/schema.json' with { type: 'json' }
import type { Manifest } from './rows/row.ts'

type Fields = Record<string, Json>

const filling = new Ajv({ strict: false, useDefaults: true }).addSchema(schema, 'proxy')
const ajv = new Ajv({ strict: false }).addSchema(schema, 'proxy')
const validators = new Map<string, ValidateFunction>()
const roots = new Map(kinds.map((kind) => [kind.kind as string, toOpenApi(definitions, kind)]))
// The API server has these functions too.
const environment = celEnv({ funcs: strings })
const programs = new Map<string, ReturnType<typeof plan>>()

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Returns the reason why an object should be rejected; undefined if it should be accepted. Ajv validates the structure with gen/v1alpha1/schema.json and an
 * independent CEL engine evaluates the rules; neither shares code with the API server.
 */
export function findViolation(manifest: Manifest): string | undefined {
  const validate = validators.get(manifest.kind) ?? ajv.compile({ $ref: `proxy#/$defs/${manifest.kind}` })
  validators.set(manifest.kind, validate)
  if (!validate(manifest)) return ajv.errorsText(validate.errors)
  const root = roots.get(manifest.kind)
  if (!root) return `kind ${manifest.kind} is not ours`
  return visit(root, structuredClone(manifest) as unknown as Json, manifest.kind)
}

/** The spec with the defaults that Ajv sets, as in a directory of manifests, except in fields that the CRD does not describe. */
export function applyDefaults(manifest: Manifest): unknown {
  const copy = structuredClone(manifest)
  filling.validate({ $ref: `proxy#/$defs/${manifest.kind}` }, copy)
  const { spec = {} } = roots.get(manifest.kind)?.properties ?? {}
  return restoreOpaque(spec, copy.spec as Json, manifest.spec as Json)
}

/** `filled`, with the content of fields that the CRD does not describe as in `original`: the API server sets no defaults there. */
function restoreOpaque(node: Schema, filled: Json, original: Json | undefined): Json {
  if (original === undefined) return filled
  if (node['x-kubernetes-preserve-unknown-fields'] === true && node.properties === undefined) return original
  if (Array.isArray(filled)) return filled.map((item: Json, index) => restoreOpaque(node.items ?? {}, item, (original as Json[])[index]))
  if (!isFields(filled)) return filled
  const entries = Object.entries(filled).map(([name, value]): [string, Json] => {
    const child = node.properties?.[name] ?? (typeof node.additionalProperties === 'object' ? node.additionalProperties : {})
    return [name, restoreOpaque(child, value, (original as Fields)[name])]
  })
  return Object.fromEntries(entries)
}

/** Sets defaults before rules are evaluated, like the API server. */
function applySchemaDefaults(node: Schema, value: Json): void {
  if (!isFields(value)) return
  const fields: Fields = value
  for (const [name, property] of Object.entries(node.properties ?? {})) {
    if (fields[name] === undefined && property.default !== undefined) fields[name] = property.default
  }
}

function visit(node: Schema, value: Json, path: string): string | undefined {
  applySchemaDefaults(node, value)
  for (const [child, inner, name] of childrenOf(node, value)) {
    const fault = visit(child, inner, `${path}${name}`)
    if (fault !== undefined) return fault
  }
  const keys = node['x-kubernetes-list-map-keys']
  if (keys && Array.isArray(value)) {
    const identities = value.map((item) => JSON.stringify(keys.map((key) => (isFields(item) ? item[key] : undefined))))
    if (new Set(identities).size < identities.length) return `${path}: duplicate ${keys.join()}`
  }
  const broken = (node['x-kubernetes-validations'] ?? []).find(({ rule }) => !holds(rule, value))
  return broken === undefined ? undefined : `${path}: ${broken.message}`
}

function childrenOf(node: Schema, value: Json): [Schema, Json, string][] {
  if (Array.isArray(value)) return node.items ? value.map((item: Json, index) => [node.items as Schema, item, `[${index}]`]) : []
  if (!isFields(value)) return []
  return Object.entries(value).flatMap(([name, inner]): [Schema, Json, string][] => {
    const child = node.properties?.[name] ?? (typeof node.additionalProperties === 'object' ? node.additionalProperties : undefined)
    return child ? [[child, inner, `.${name}`]] : []
  })
}

function holds(rule: string, self: Json): boolean {
  const program = programs.get(rule) ?? plan(environment, parse(rule))
  programs.set(rule, program)
  const result = program({ self: toCel(self) } as Parameters<typeof program>[0])
  if (isCelError(result)) throw new Error(`${rule}: ${String(result)} on ${JSON.stringify(self)}`)
  return result === true
}

/** Converts a value for CEL, which distinguishes integers from floats. */
function toCel(value: Json): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value
  if (Array.isArray(value)) return value.map((item: Json) => toCel(item))
  return isFields(value) ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, toCel(inner)])) : value
}
