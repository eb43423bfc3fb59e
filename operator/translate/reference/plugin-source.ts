import { createHash } from 'node:crypto'
import { PluginSyntaxError, stripTypes } from '#api/plugin/syntax.ts'
import type { ResolvedPluginSource } from '#gen/config/types.ts'
import type { MessageCode } from '#api/messages/code.ts'
import { GROUP } from '#api/names.ts'
import type { PluginConfigMapReference } from '#gen/v1alpha1/types.ts'
import { keyOf, type ConfigMap } from '../../source/objects.ts'
import type { Context } from '../common/context.ts'

/** Source of a plugin as a message, and its first syntax error. */
interface PluginSource {
  readonly message: ResolvedPluginSource
  readonly problem: string | undefined
}

/**
 * The source that a policy of `from` names, and its problem. A ConfigMap of another namespace needs a ReferenceGrant whatever `backendGrants` says, because its content runs in data
 * planes; the grant is checked before existence. Source with a syntax error is sent nevertheless: data planes keep the version that they have loaded.
 */
export function resolvePluginSource(
  { grants, snapshot }: Pick<Context, 'grants' | 'snapshot'>,
  from: string,
  { name, namespace = from, key }: PluginConfigMapReference,
): { readonly message: ResolvedPluginSource; readonly problem?: { readonly text: string; readonly code: MessageCode } } {
  const shown = `ConfigMap ${namespace}/${name}`
  const refuse = (text: string, code: MessageCode, denied?: true) => ({ message: { invalid: text, ...(denied && { denied }) }, problem: { text, code } })
  if (!grants.permits({ group: GROUP, kind: 'ProxyPolicy', namespace: from }, { group: '', kind: 'ConfigMap', name }, namespace))
    return refuse(`${shown} not accessible to kind ProxyPolicy of namespace ${from} (missing ReferenceGrant in namespace ${namespace}?)`, 'PX1353', true)
  const map = snapshot.get('ConfigMap', namespace, name)
  if (map === undefined) return refuse(`${shown} not found`, 'PX1321')
  const source = readPluginSource(map, key)
  if (source === undefined) return refuse(`${shown} has no ${key}`, 'PX1321')
  const { message, problem } = source
  return problem === undefined ? { message } : { message, problem: { text: problem, code: 'PX1322' } }
}

/** A plugin whose source is in an image. */
export interface PluginImageReference {
  /** The result of `pluginImageId`. */
  readonly id: string
  readonly image: string
  /** Path in the image. */
  readonly file: string
  /** Path of `source` in the section of the policy. */
  readonly path: readonly string[]
  /** Why data planes do not receive the source, or its first syntax error. */
  readonly problem: { readonly text: string; readonly code: MessageCode } | undefined
}

/** Names a file of an image in `TranslateOptions.pluginImages`. */
const pluginImageId = (image: string, file: string): string => `${image} ${file}`

/** Replaces `image` and `path` of a source by what was fetched. Returns the reference, if the source has one. */
export function takePluginImage(
  context: Pick<Context, 'options'>,
  { image, path: file }: Readonly<Record<string, unknown>>,
  resolved: Record<string, unknown>,
  path: readonly string[],
  owner: string,
): PluginImageReference[] {
  if (typeof image !== 'string' || typeof file !== 'string') return []
  const { id, message, problem } = resolvePluginImage(context, image, file)
  for (const field of ['image', 'path']) Reflect.deleteProperty(resolved, field)
  resolved['configMapRef'] = { ...message, owner }
  return [{ id, image, file, path, problem }]
}

/** The source of a plugin in an image, as far as it has been fetched. */
function resolvePluginImage(
  { options: { pluginImages, pluginImageErrors } }: Pick<Context, 'options'>,
  image: string,
  file: string,
): { readonly message: ResolvedPluginSource } & Pick<PluginImageReference, 'id' | 'problem'> {
  const id = pluginImageId(image, file)
  const code = pluginImages.get(id)
  if (code === undefined) {
    const error = pluginImageErrors.get(id)
    const invalid = `${file} of the image ${image} has not been fetched yet`
    // The config contains nothing that changes with each attempt.
    return { id, message: { invalid }, problem: { text: error === undefined ? invalid : `${invalid}: ${error}`, code: 'PX1344' } }
  }
  const name = `${image.slice(0, image.indexOf('@'))}/${file.replace(/^\//, '')}`
  const problem = findSyntaxError(code, name)
  return {
    id,
    message: { code, file: name, digest: createHash('sha256').update(code).digest('hex') },
    problem: problem === undefined ? undefined : { text: problem, code: 'PX1322' },
  }
}

const known = new WeakMap<ConfigMap, Map<string, PluginSource>>()

/** Reads a key of a ConfigMap as the source of a plugin, once per object. Undefined if the ConfigMap does not have the key. */
function readPluginSource(map: ConfigMap, key: string): PluginSource | undefined {
  const code = Object.hasOwn(map.data ?? {}, key) ? map.data?.[key] : undefined
  if (code === undefined) return undefined
  let sources = known.get(map)
  if (sources === undefined) known.set(map, (sources = new Map()))
  let source = sources.get(key)
  if (source === undefined) {
    const file = `${keyOf(map)}/${key}`
    const digest = createHash('sha256').update(code).digest('hex')
    sources.set(key, (source = { message: { code, file, digest }, problem: findSyntaxError(code, file) }))
  }
  return source
}

function findSyntaxError(code: string, file: string): string | undefined {
  try {
    stripTypes(code, file)
    return undefined
  } catch (error) {
    if (error instanceof PluginSyntaxError) return error.message
    throw error
  }
}
