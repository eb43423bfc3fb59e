import { registerHooks } from 'node:module'
import { permittedModules, PluginSyntaxError, stripTypes } from '#api/plugin/syntax.ts'

/** Globals that reach beyond the thread. */
const removed = [
  'process',
  'fetch',
  'WebSocket',
  'EventSource',
  'BroadcastChannel',
  'navigator',
  'localStorage',
  'sessionStorage',
  'Worker',
  'SharedArrayBuffer',
  'WebAssembly',
  'caches',
] as const

const SCHEME = 'plugin:'
const HELPER = `${SCHEME}//@proxy/plugin`
const HELPER_SOURCE = 'export const definePlugin = (plugin) => plugin\n'

/**
 * Imports the module of a plugin in this thread, and then permits no other import than those of `permittedModules`. Removes the globals that reach beyond the thread.
 * Call it once per thread. Rejects with the error of the module; its stack names file, line and column.
 */
export async function importPlugin(code: string, file: string): Promise<unknown> {
  const url = `${SCHEME}///${encodeURI(file)}`
  const source = stripTypes(code, file)
  registerHooks({
    resolve(specifier, _context, nextResolve) {
      if (specifier === url) return { url, shortCircuit: true }
      if (specifier === '@proxy/plugin') return { url: HELPER, shortCircuit: true }
      const name = specifier.startsWith('node:') ? specifier.slice('node:'.length) : specifier
      if (permittedModules.has(name)) return nextResolve(`node:${name}`)
      throw new Error(`plugins cannot import ${JSON.stringify(specifier)}; bundle packages into the plugin`)
    },
    load(loaded, context, nextLoad) {
      if (loaded === url) return { format: 'module', source, shortCircuit: true }
      if (loaded === HELPER) return { format: 'module', source: HELPER_SOURCE, shortCircuit: true }
      return nextLoad(loaded, context)
    },
  })
  for (const name of removed) Reflect.deleteProperty(globalThis, name)
  const module = (await import(url)) as { readonly default?: unknown }
  return module.default
}

/** The message of an error with the line and column of the plugin that threw it. */
export function describeError(error: unknown, file: string): string {
  if (error instanceof PluginSyntaxError) return error.message
  if (!(error instanceof Error)) return String(error).slice(0, 500)
  const url = `${SCHEME}///${encodeURI(file)}`
  const at = error.stack?.split('\n').find((line) => line.includes(url))
  const position = at === undefined ? undefined : /:(\d+(?::\d+)?)\)?\s*$/.exec(at)?.[1]
  return `${file}${position === undefined ? '' : `:${position}`}: ${error.name}: ${error.message}`.slice(0, 1000)
}
