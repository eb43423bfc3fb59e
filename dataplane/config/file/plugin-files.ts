import { PluginSyntaxError, stripTypes } from '#api/plugin/syntax.ts'
import type { Plugin, Policy } from '#gen/config/types.ts'
import type { ReadText } from './tls.ts'

/** As much as a ConfigMap holds. */
const MAX_SOURCE_BYTES = 1_048_576

/** A problem, with its path below `traffic`. */
interface PluginProblem {
  readonly path: readonly (string | number)[]
  readonly text: string
}

/**
 * Replaces each `source.file` of a policy by the content of the file, in the form of the config stream. Each policy owns its plugins, as policies of the stream do:
 * plugins of one name in two policies are two plugins.
 * A syntax error is a warning: data planes keep the version that they have loaded.
 *
 * @param read undefined: plugins from files are not allowed
 */
export function readPluginFiles(
  policy: Policy,
  read: ReadText | undefined,
): { readonly message: Policy; readonly problems: readonly PluginProblem[]; readonly warnings: readonly PluginProblem[] } {
  const problems: PluginProblem[] = []
  const warnings: PluginProblem[] = []
  const { traffic } = policy
  if (traffic?.plugins === undefined) return { message: policy, problems, warnings }
  const owner = `${policy.policy.namespace}/${policy.policy.name}`
  const plugins = traffic.plugins.map((plugin, index): Plugin => {
    const { file, configMapRef } = plugin.source
    if (plugin.source.image !== undefined) {
      problems.push({
        path: ['plugins', index, 'source', 'image'],
        text: 'is for policies that an operator reads; unpack the image, and name the module in source.file',
      })
      return plugin
    }
    if (file === undefined) return configMapRef === undefined ? plugin : { ...plugin, source: { configMapRef: { owner, ...configMapRef } } }
    const path = ['plugins', index, 'source', 'file']
    try {
      const code = readSource(file, read)
      const warning = findSyntaxError(code, file)
      if (warning !== undefined) warnings.push({ path, text: warning })
      return { ...plugin, source: { configMapRef: { code, file, owner } } }
    } catch (error) {
      problems.push({ path, text: error instanceof Error ? error.message : String(error) })
      return plugin
    }
  })
  return { message: { ...policy, traffic: { ...traffic, plugins } }, problems, warnings }
}

function readSource(file: string, read: ReadText | undefined): string {
  if (read === undefined) throw new Error('is not read from a file that is used together with XDS_ADDRESS; name a ConfigMap in a ProxyPolicy')
  const code = read(file)
  const size = Buffer.byteLength(code)
  if (size > MAX_SOURCE_BYTES) throw new Error(`${file}: ${size} bytes; at most ${MAX_SOURCE_BYTES} are read`)
  return code
}

function findSyntaxError(code: string, file: string): string | undefined {
  try {
    stripTypes(code, file)
    return undefined
  } catch (error) {
    if (error instanceof PluginSyntaxError) return `${error.message}; the plugin cannot be loaded`
    throw error
  }
}
