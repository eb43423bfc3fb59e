import { withCode, type MessageCode } from '#api/messages/code.ts'
import { describeYamlError } from '#api/secret-fields.ts'
import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Document } from 'yaml'
import { GATEWAY_GROUP, GROUP } from '#api/names.ts'
import { apiVersionOf, kinds, type Kind, type KubeObject } from './objects.ts'
import { schemaOf } from './schemas.ts'
import { suggest } from '#api/suggest.ts'
import { validate, type CodedIssue, type Path } from './validate.ts'

/** A position in a chunk, both numbers from 1. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** A message to the user about a file. Notes are not mistakes. */
interface Finding extends Position {
  readonly severity: 'error' | 'note'
  readonly field: string
  readonly message: string
}

/** One object of a chunk; without `object` it is broken, and only known by its `id`. */
interface Item {
  /** `<kind>/<namespace>/<name>`. */
  readonly id: string
  readonly object?: KubeObject
  /** Position of a field, or of the last part of its path that exists. */
  positionOf(path: Path): Position
}

/** The objects and problems of one YAML document. */
export interface Chunk {
  readonly items: readonly Item[]
  readonly findings: readonly Finding[]
  /** It is not known which objects the chunk was meant to hold. */
  readonly isUnreadable: boolean
}

/** Core kinds that manifests hold and we do not read; any other core kind is a slip of the pen. */
const otherCoreKinds = new Set([
  'ServiceAccount',
  'ReplicationController',
  'PersistentVolume',
  'PersistentVolumeClaim',
  'Endpoints',
  'Event',
  'LimitRange',
  'Node',
  'PodTemplate',
  'ResourceQuota',
])
const X_GROUP = 'gateway.networking.x-k8s.io'
/** Gateway API kinds that exist and that we do not serve. */
const otherGatewayKinds = new Set(['UDPRoute', 'XBackend', 'XBackendTrafficPolicy', 'XMesh'])

/** Reads one YAML document; never throws. */
export function readChunk(text: string, defaultNamespace = 'default'): Chunk {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, merge: true, prettyErrors: false })
  const [syntax] = document.errors
  if (syntax) return unreadable(toPosition(lines, syntax.pos[0]), `YAML: ${describeYamlError(syntax.message)}`, 'PX2001')
  let value: unknown
  try {
    value = document.toJS()
  } catch (error) {
    return unreadable({ line: 1, column: 1 }, `YAML: ${describeYamlError(error instanceof Error ? error.message : String(error))}`, 'PX2001')
  }
  if (value === null || value === undefined) return { items: [], findings: [], isUnreadable: false }
  const parts = isList(value) ? value.items.map((item, index) => ({ item, path: ['items', index] as Path })) : [{ item: value, path: [] as Path }]
  const read = parts.map(({ item, path }) => readObject(item, defaultNamespace, (inner) => positionAt(document, lines, [...path, ...inner])))
  return { items: read.flatMap(({ items }) => items), findings: read.flatMap(({ findings }) => findings), isUnreadable: read.some((each) => each.isUnreadable) }
}

const unreadable = (position: Position, message: string, code: MessageCode, field = ''): Chunk => ({
  items: [],
  findings: [{ severity: 'error', ...position, field, message: withCode(message, code) }],
  isUnreadable: true,
})

function isList(value: unknown): value is { items: unknown[] } {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'List' && 'items' in value && Array.isArray(value.items)
}

function toPosition(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset)
  return { line, column: col }
}

/** Position of the deepest node on the way to `path` that exists; of the key, where there is one. */
function positionAt(document: Document.Parsed, lines: LineCounter, path: Path): Position {
  let node: unknown = document.contents
  let offset = document.contents?.range[0] ?? 0
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && key.value === step)
      if (!pair) break
      if (isScalar(pair.key) && pair.key.range) offset = pair.key.range[0]
      node = pair.value
    } else if (isSeq(node) && typeof step === 'number') {
      node = node.items[step]
      const range = (node as { range?: [number, number, number] } | undefined)?.range
      if (range) offset = range[0]
    } else break
  }
  return toPosition(lines, offset)
}

/** `spec.listeners[0].port`. */
function fieldOf(path: Path): string {
  return path.map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`)).join('')
}

const isOldListenerSet = ({ group, kind }: { readonly group?: string; readonly kind?: string }): boolean => group === X_GROUP && kind === 'XListenerSet'

/** Parents of routes, and referrers of grants, that are called XListenerSet: the object has the new name. */
function renameReferences(object: KubeObject): KubeObject {
  const rename = <T extends { readonly group?: string; readonly kind?: string }>(refs: readonly T[]): T[] =>
    refs.map((ref) => (isOldListenerSet(ref) ? { ...ref, group: GATEWAY_GROUP, kind: 'ListenerSet' } : ref))
  if (object.kind === 'ReferenceGrant') return { ...object, spec: { ...object.spec, from: rename(object.spec.from) } }
  if (!('spec' in object) || !('parentRefs' in object.spec) || object.spec.parentRefs === undefined) return object
  return { ...object, spec: { ...object.spec, parentRefs: rename(object.spec.parentRefs) } } as KubeObject
}

/** Finds the kind for an apiVersion and kind, or the reason why it is not read. */
function findKind(apiVersion: string, kind: string): { readonly kind: Kind } | { readonly error: string } | { readonly note: string } {
  const [group, version] = apiVersion.includes('/') ? (apiVersion.split('/', 2) as [string, string]) : ['', apiVersion]
  // The experimental channel's name of ListenerSet, before it became v1.
  if (isOldListenerSet({ group, kind })) return { kind: 'ListenerSet' }
  if (Object.hasOwn(kinds, kind)) {
    const known = kind as Kind
    if (kinds[known].group !== group) {
      const isOurs = group === '' || group === GROUP || group === GATEWAY_GROUP
      return isOurs ? { error: `${kind} has apiVersion ${apiVersionOf(known)}, not ${apiVersion}` } : { note: `kind ${kind} of ${group} is not read` }
    }
    return kinds[known].versions.includes(version) ? { kind: known } : { error: `version ${version} of ${kind} is not known; use ${apiVersionOf(known)}` }
  }
  if ((group === '' && otherCoreKinds.has(kind)) || ((group === GATEWAY_GROUP || group === X_GROUP) && otherGatewayKinds.has(kind)))
    return { note: `kind ${kind} is not read` }
  if (group !== '' && group !== GROUP && group !== GATEWAY_GROUP && group !== X_GROUP && group !== kinds.EndpointSlice.group)
    return { note: `kind ${kind} of ${group} is not read` }
  const near = suggest(kind, Object.keys(kinds))
  return { error: `kind ${kind} is not known${near === undefined ? `; correct it, or apiVersion ${apiVersion}` : `; did you mean ${near}?`}` }
}

interface RawObject {
  readonly apiVersion?: unknown
  readonly kind?: unknown
  readonly metadata?: { readonly name?: unknown; readonly namespace?: unknown }
}

function readObject(value: unknown, defaultNamespace: string, positionOf: (path: Path) => Position): Chunk {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return unreadable(positionOf([]), 'expected an object with apiVersion, kind and metadata', 'PX2001')
  const raw = value as RawObject
  for (const field of ['apiVersion', 'kind'] as const) {
    if (typeof raw[field] !== 'string') return unreadable(positionOf([field]), `${field} is required; add it`, 'PX2004', field)
  }
  const found = findKind(String(raw.apiVersion), String(raw.kind))
  if ('note' in found)
    return {
      items: [],
      findings: [{ severity: 'note', ...positionOf(['kind']), field: 'kind', message: withCode(`${found.note}; ignored`, 'PX2010') }],
      isUnreadable: false,
    }
  if ('error' in found) return unreadable(positionOf(['kind']), found.error, 'PX2002', 'kind')
  const { kind } = found
  if (typeof raw.metadata?.name !== 'string') return unreadable(positionOf(['metadata']), 'name is required; add it', 'PX2004', 'metadata.name')

  const namespace = kinds[kind].isClusterScoped ? '' : typeof raw.metadata.namespace === 'string' ? raw.metadata.namespace : defaultNamespace
  const item = { id: `${kind}/${namespace}/${raw.metadata.name}`, positionOf }
  const checked = validate(schemaOf(kind, String(raw.apiVersion).split('/').at(-1) ?? ''), value)
  const issues: CodedIssue[] = [...checkNames(kind, raw.metadata.name, namespace), ...checked.issues]
  // With the schema satisfied, the value has the kind's shape.
  const object = issues.length === 0 ? renameReferences(complete(kind, namespace, checked.value as KubeObject)) : undefined
  const findings = issues.map(({ path, message, code }): Finding => ({
    severity: 'error',
    ...positionOf(path),
    field: fieldOf(path),
    message: withCode(message, code),
  }))
  return { items: [issues.length === 0 && object ? { ...item, object } : item], findings, isUnreadable: false }
}

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
/** Kinds whose name is part of a DNS name. */
const labelKinds: ReadonlySet<Kind> = new Set(['Service', 'Namespace'])

/** Names that an API server accepts. */
function checkNames(kind: Kind, name: string, namespace: string): CodedIssue[] {
  const isLabel = (text: string): boolean => text.length <= 63 && LABEL.test(text)
  const isGood = labelKinds.has(kind) ? isLabel(name) : name.length <= 253 && name.split('.').every((part) => LABEL.test(part))
  const advice = 'use lower-case letters, digits and -'
  return [
    ...(isGood || name === ''
      ? []
      : [{ path: ['metadata', 'name'], message: `"${name}" is not a name that ${kind} can have; ${advice}`, code: 'PX2009' as const }]),
    ...(namespace === '' || isLabel(namespace)
      ? []
      : [{ path: ['metadata', 'namespace'], message: `"${namespace}" is not a name of a namespace; ${advice}`, code: 'PX2009' as const }]),
  ]
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether the status of a document, as in the output of kubectl, can be read for entries of other controllers. It is not validated. */
function hasEntries(status: unknown): boolean {
  const isListOrAbsent = (value: unknown): boolean => value === undefined || (Array.isArray(value) && value.every(isObject))
  return isObject(status) && isListOrAbsent(status['parents']) && isListOrAbsent(status['ancestors'])
}

/** Adds what an API server would add: the newest version, namespace, generation, and data for stringData. */
function complete(kind: Kind, namespace: string, { status, ...object }: KubeObject & { readonly status?: unknown }): KubeObject {
  const { namespace: _written, creationTimestamp, ...metadata } = object.metadata
  const completed = {
    ...object,
    ...(hasEntries(status) ? { status } : {}),
    kind,
    apiVersion: apiVersionOf(kind),
    metadata: { ...metadata, namespace, generation: object.metadata.generation ?? 1, creationTimestamp: creationTimestamp ?? '' },
  }
  if (!('stringData' in completed)) return completed as KubeObject
  const { stringData, ...rest } = completed as typeof completed & { stringData: Record<string, string>; data?: Record<string, string> }
  const encoded = Object.fromEntries(Object.entries(stringData).map(([entry, text]) => [entry, Buffer.from(text, 'utf8').toString('base64')]))
  return { ...rest, data: { ...rest.data, ...encoded } } as KubeObject
}
