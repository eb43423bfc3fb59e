/**
 * Writes gen/gateway-api/schemas.json: what an API server validates in the kinds of Gateway API and its Inference Extension, from the CRDs of their Go modules.
 *
 *   make gateway-api            downloads the modules (needs Go)
 *
 * With `--check`, writes nothing and fails if the file differs.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { parseAllDocuments } from 'yaml'

type Fields = Readonly<Record<string, unknown>>
interface Rule {
  readonly rule: string
}
interface Crd {
  readonly kind: string
  readonly spec: {
    readonly names: { readonly kind: string }
    readonly versions: readonly {
      readonly name: string
      readonly served: boolean
      readonly schema: { readonly openAPIV3Schema: { readonly properties: Fields } }
    }[]
  }
}

const FILE = join(import.meta.dirname, '../../gen/gateway-api/schemas.json')
/** Kinds that the operator reads; operator/source/objects.ts has the same ones. */
const KINDS = new Set(
  [
    'BackendTLSPolicy',
    'GRPCRoute',
    'Gateway',
    'GatewayClass',
    'HTTPRoute',
    'InferencePool',
    'ListenerSet',
    'ReferenceGrant',
    'TCPRoute',
    'TLSRoute',
  ].toSorted(),
)
/** Keywords that decide nothing: documentation, and how patches merge. */
const DROPPED = new Set(['description', 'x-kubernetes-map-type', 'x-kubernetes-list-type'])
const INT32 = 2_147_483_647
/** Subtrees are shared if it makes the file smaller. */
const MIN_SHARED = 60

/** A schema without what decides nothing. Rules about changes (`oldSelf`) have no meaning for one object. */
function compact(schema: Fields): Fields {
  const entries = Object.entries(schema).flatMap(([keyword, value]): [string, unknown][] => {
    if (keyword === 'x-kubernetes-list-type' && value === 'set') return [[keyword, value]]
    if (DROPPED.has(keyword) || (keyword === 'format' && value === 'int32')) return []
    if (keyword === 'x-kubernetes-validations') return readRules(value as readonly Rule[])
    if (keyword === 'properties')
      return [[keyword, Object.fromEntries(Object.entries(value as Fields).map(([name, child]) => [name, compact(child as Fields)]))]]
    if (['items', 'additionalProperties', 'not'].includes(keyword) && typeof value === 'object') return [[keyword, compact(value as Fields)]]
    if (['oneOf', 'anyOf', 'allOf'].includes(keyword)) return [[keyword, (value as Fields[]).map(compact)]]
    return [[keyword, value]]
  })
  // The API server refuses an int32 that has more bits.
  const range = schema['format'] === 'int32' ? { minimum: -INT32 - 1, maximum: INT32 } : {}
  return { ...range, ...Object.fromEntries(entries) }
}

/** Names that CEL reserves are escaped in rules of CRDs, for the typed environment of the API server. */
const readRules = (rules: readonly Rule[]): [string, unknown][] => {
  const kept = rules.filter(({ rule }) => !/\boldSelf\b/.test(rule)).map((each) => ({ ...each, rule: each.rule.replaceAll(/\b__(\w+?)__\b/g, '$1') }))
  return kept.length > 0 ? [['x-kubernetes-validations', kept]] : []
}

/** Replaces subtrees that occur several times by references to `$defs`. */
function share(roots: Fields): { readonly $defs: Fields; readonly kinds: Fields } {
  const counts = new Map<string, number>()
  const children = (node: unknown): unknown[] => (typeof node === 'object' && node !== null ? Object.values(node) : [])
  const isSchema = (node: unknown): node is Fields =>
    typeof node === 'object' && node !== null && ('type' in node || 'oneOf' in node) && typeof (node as Fields)['type'] !== 'object'
  const count = (node: unknown): void => {
    if (isSchema(node)) {
      const text = JSON.stringify(node)
      const seen = counts.get(text) ?? 0
      counts.set(text, seen + 1)
      if (seen > 0) return
    }
    for (const child of children(node)) count(child)
  }
  count(roots)
  const $defs: Record<string, unknown> = {}
  const names = new Map<string, string>()
  const replace = (node: unknown): unknown => {
    if (typeof node !== 'object' || node === null) return node
    const text = isSchema(node) ? JSON.stringify(node) : ''
    const copy = (): unknown =>
      Array.isArray(node) ? node.map(replace) : Object.fromEntries(Object.entries(node).map(([key, child]) => [key, replace(child)]))
    if (text.length < MIN_SHARED || (counts.get(text) ?? 0) < 2) return copy()
    let name = names.get(text)
    if (name === undefined) {
      names.set(text, (name = String(names.size)))
      $defs[name] = copy()
    }
    return { $ref: name }
  }
  const kinds = replace(roots) as Fields
  return { $defs, kinds }
}

async function readCrds(folder: string): Promise<Crd[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml').toSorted()
  const texts = await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')))
  return texts.flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as Crd)).filter((crd) => crd?.kind === 'CustomResourceDefinition')
}

function toVersions({ spec }: Crd): Fields {
  const versions = spec.versions
    .filter(({ served }) => served)
    .map(({ name, schema }) => [name, compact((schema.openAPIV3Schema.properties['spec'] ?? {}) as Fields)] as const)
  return Object.fromEntries(versions)
}

/** One line for each schema, so that a change of a schema is a change of a line. */
function print(modules: readonly string[], { $defs, kinds }: ReturnType<typeof share>): string {
  const lines = (entries: Fields): string =>
    Object.entries(entries)
      .map(([name, schema]) => `    ${JSON.stringify(name)}: ${JSON.stringify(schema)}`)
      .join(',\n')
  return `{\n  "modules": ${JSON.stringify(modules)},\n  "kinds": {\n${lines(kinds)}\n  },\n  "$defs": {\n${lines($defs)}\n  }\n}\n`
}

const { values, positionals } = parseArgs({ options: { check: { type: 'boolean' } }, allowPositionals: true })
const [gatewayApi = '', inference = ''] = positionals
const crds = [...(await readCrds(join(gatewayApi, 'config/crd/experimental'))), ...(await readCrds(join(inference, 'config/crd/bases')))]
const read = new Map(crds.map((crd) => [crd.spec.names.kind, crd]))
const missing = [...KINDS].filter((kind) => !read.has(kind))
if (missing.length > 0) throw new Error(`the CRDs lack ${missing.join(', ')}; pass the directories of both Go modules`)
const text = print(
  positionals.map((folder) => basename(folder)),
  share(Object.fromEntries([...KINDS].map((kind) => [kind, toVersions(read.get(kind) as Crd)]))),
)
if (values.check) {
  if (text !== (await readFile(FILE, 'utf8'))) throw new Error('gen/gateway-api/schemas.json is out of date; run `make gateway-api` and commit the result')
} else {
  await mkdir(join(FILE, '..'), { recursive: true })
  await writeFile(FILE, text)
}
console.log(`gen/gateway-api/schemas.json: ${Math.ceil(text.length / 1024)} KB`)
