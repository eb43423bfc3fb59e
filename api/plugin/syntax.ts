import { stripTypeScriptTypes } from 'node:module'

/** Modules of Node that plugins may import: none of them reaches files, processes, the network or other threads. */
export const permittedModules: ReadonlySet<string> = new Set(['assert', 'buffer', 'events', 'querystring', 'stream', 'string_decoder', 'url', 'util'])

/** Why a plugin cannot import a module, and what it can import. */
export const describeForeign = (specifier: string): string =>
  `plugins cannot import ${JSON.stringify(specifier)}; they can import @proxy/plugin and the Node modules ${[...permittedModules].join(', ')}`

/** A plugin whose source is not valid TypeScript. The message starts with file, line and column. */
export class PluginSyntaxError extends Error {}

/**
 * Replaces the types of a source by white space, so that positions stay. Syntax that needs a transformation, such as enums, is an error.
 *
 * @param file name of the source in error messages
 * @throws PluginSyntaxError
 */
export function stripTypes(code: string, file: string): string {
  const { emitWarning } = process
  try {
    // Node warns at the first call that the function may change.
    process.emitWarning = () => undefined
    return stripTypeScriptTypes(code)
  } catch (error) {
    const { message, stack = '' } = error as Error
    // The stack starts with the line number, some lines, and a mark below the column.
    const [, line, mark] = /^\S*:(\d+)\n(?:[^\n]*\n){1,4}?( *)\^/.exec(stack) ?? []
    const position = line === undefined ? '' : `:${line}:${(mark?.length ?? 0) + 1}`
    throw new PluginSyntaxError(`${file}${position}: ${message.split('\n', 1)[0] ?? ''}`, { cause: error })
  } finally {
    process.emitWarning = emitWarning
  }
}
