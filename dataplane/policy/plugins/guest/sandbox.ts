import { registerHooks } from 'node:module'
import { describeForeign, permittedModules, stripTypes } from '#api/plugin/syntax.ts'
import { HELPER_SOURCE, SCHEME, urlOf } from './module-url.ts'

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

const HELPER = `${SCHEME}//@proxy/plugin`

/**
 * Imports the module of a plugin in this thread, and then permits no other import than those of `permittedModules`. Removes the globals that reach beyond the thread.
 * Call it once per thread. Rejects with the error of the module; its stack names file, line and column.
 */
export async function importInSandbox(code: string, file: string): Promise<unknown> {
  const url = urlOf(file)
  const source = stripTypes(code, file)
  registerHooks({
    resolve(specifier, _context, nextResolve) {
      if (specifier === url) return { url, shortCircuit: true }
      if (specifier === '@proxy/plugin') return { url: HELPER, shortCircuit: true }
      const name = specifier.startsWith('node:') ? specifier.slice('node:'.length) : specifier
      if (permittedModules.has(name)) return nextResolve(`node:${name}`)
      throw new Error(`${describeForeign(specifier)}; bundle packages into the plugin`)
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
