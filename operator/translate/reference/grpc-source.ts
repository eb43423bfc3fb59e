import { compileGrpcTools, DescriptorError, linkFiles, readDescriptorSet, type GrpcSelection } from '#api/grpc-tools/index.ts'
import type { ResolvedMcpGrpc } from '#gen/config/types.ts'
import type { McpGrpc } from '#gen/v1alpha1/types.ts'
import type { ConfigMap } from '../../source/objects.ts'
import type { Snapshot } from '../../source/snapshot.ts'
import { bytesOf } from './openapi-source.ts'

interface Resolved {
  readonly message: ResolvedMcpGrpc
  readonly problems: readonly { readonly text: string; readonly code: 'PX1351' | 'PX1352' }[]
}

/** Descriptors are sent as they are: the data plane compiles them, as it does those of reflection. */
export function resolveGrpc(snapshot: Snapshot, namespace: string, { configMapRef, ...selection }: Omit<McpGrpc, 'backendRef'>): Resolved {
  if (configMapRef === undefined) return { message: selection, problems: [] }
  const { name, key } = configMapRef
  const map = snapshot.get('ConfigMap', namespace, name)
  const shown = `ConfigMap ${namespace}/${name}`
  const bytes = map && bytesOf(map, key)
  if (map === undefined || bytes === undefined) return unusable(`${shown} ${map === undefined ? 'not found' : `has no ${key}`}`)
  const problems = check(map, key, bytes, selection)
  if (typeof problems === 'string') return unusable(`${key} of ${shown}: ${problems}`)
  return { message: { ...selection, descriptors: bytes.toString('base64') }, problems: problems.map((text) => ({ text, code: 'PX1352' })) }
}

function unusable(problem: string): Resolved {
  const text = `${problem}; the target has no tools`
  return { message: { invalid: text }, problems: [{ text, code: 'PX1351' }] }
}

const known = new WeakMap<ConfigMap, Map<string, readonly string[] | string>>()

/** Settings without effect, or why the set is unusable; computed once per object and settings. */
function check(map: ConfigMap, key: string, bytes: Buffer, selection: GrpcSelection): readonly string[] | string {
  let results = known.get(map)
  if (results === undefined) known.set(map, (results = new Map()))
  const id = JSON.stringify([key, selection])
  let result = results.get(id)
  if (result === undefined) results.set(id, (result = compile(bytes, selection)))
  return result
}

function compile(bytes: Buffer, selection: GrpcSelection): readonly string[] | string {
  try {
    return compileGrpcTools(linkFiles(readDescriptorSet(bytes)), selection).problems
  } catch (error) {
    if (error instanceof DescriptorError) return error.message
    throw error
  }
}
