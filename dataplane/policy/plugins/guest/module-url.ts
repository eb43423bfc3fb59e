import { PluginSyntaxError } from '#api/plugin/syntax.ts'

export const SCHEME = 'plugin:'
/** Source of `@proxy/plugin`. */
export const HELPER_SOURCE = 'export const definePlugin = (plugin) => plugin\n'

/** URL of the module of a plugin, as stack traces name it. */
export const urlOf = (file: string): string => `${SCHEME}///${encodeURI(file)}`

/** The message of an error with the line and column of the plugin that threw it. */
export function describeError(error: unknown, file: string): string {
  if (error instanceof PluginSyntaxError) return error.message
  if (!(error instanceof Error)) return String(error).slice(0, 500)
  const url = urlOf(file)
  const at = error.stack?.split('\n').find((line) => line.includes(url))
  const position = at === undefined ? undefined : /:(\d+(?::\d+)?)\)?\s*$/.exec(at)?.[1]
  return `${file}${position === undefined ? '' : `:${position}`}: ${error.name}: ${error.message}`.slice(0, 1000)
}
