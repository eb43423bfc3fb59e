import { stripTypes } from '#api/plugin/syntax.ts'
import { HELPER_SOURCE, urlOf } from './module-url.ts'

const toUrl = (source: string): string => `data:text/javascript;base64,${Buffer.from(source).toString('base64')}`
const HELPER = toUrl(HELPER_SOURCE)
const HELPER_IMPORT = /(\bfrom\s*|\bimport\s*\(?\s*)(['"])@proxy\/plugin\2/g

let lastVersion = 0

/**
 * Imports the module of a plugin into this thread, and returns its default export. It can import modules of Node. Each call makes a module of its own, which
 * stays in memory until the thread ends. Rejects with the error of the module; its stack names file, line and column.
 */
export async function importModule(code: string, file: string): Promise<unknown> {
  const source = stripTypes(code, file).replaceAll(HELPER_IMPORT, (_, before: string, quote: string) => `${before}${quote}${HELPER}${quote}`)
  try {
    const module = (await import(toUrl(`${source}\n//# version ${++lastVersion}\n//# sourceURL=${urlOf(file)}\n`))) as { readonly default?: unknown }
    return module.default
  } catch (error) {
    throw isUnresolved(error) ? new Error(describeUnresolved(error)) : error
  }
}

const isUnresolved = (error: unknown): error is Error =>
  typeof error === 'object' &&
  error !== null &&
  'code' in error &&
  ['ERR_UNSUPPORTED_RESOLVE_REQUEST', 'ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes(String(error.code))

/** Without the URL of the importing module, which is its source. */
function describeUnresolved({ message }: Error): string {
  const specifier = /["']([^"']{1,200})["']/.exec(message)?.[1] ?? 'a module'
  return `plugins cannot import ${JSON.stringify(specifier)}; bundle packages into the plugin`
}
