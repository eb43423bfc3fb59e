import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire, isBuiltin } from 'node:module'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { describeForeign, permittedModules, PluginSyntaxError, stripTypes } from '#api/plugin/syntax.ts'
import { fail } from './common.ts'
import type { Environment } from './node.ts'
import { checkTypes } from './types.ts'

/** The API server accepts no larger ConfigMap. */
const MAX_SOURCE_BYTES = 1_048_576

/** The part of esbuild that is used. It belongs to the project of the plugin, so that proxyctl needs no package for the machine. */
interface Bundler {
  build(options: object): Promise<{ readonly outputFiles: readonly { readonly text: string }[]; readonly metafile: { readonly inputs: object } }>
}

interface BundleError {
  readonly text: string
  readonly location: { readonly file: string; readonly line: number; readonly column: number } | null
}

/** A source with the modules that it imports, and the files that it was built from. */
export interface BuiltModule {
  readonly code: string
  readonly inputs: readonly string[]
}

/** Reads a source, with the modules that it imports. With the environment for the compiler, types are checked. Rejects with a ToolError. */
export async function buildModule(file: string, types?: Environment): Promise<BuiltModule> {
  const text = await readFile(file, 'utf8').catch((error: Error) => fail(error.message, 'PX6009'))
  const built = await bundle(file, text)
  if (types !== undefined) await checkTypes(file, types)
  const size = Buffer.byteLength(built.code)
  if (size > MAX_SOURCE_BYTES) fail(`${file}: ${size} bytes with its modules; a ConfigMap holds at most ${MAX_SOURCE_BYTES}`)
  return built
}

/** Replaces a file at once: a gateway that watches the directory never reads a part of it. */
export async function replaceFile(file: string, text: string): Promise<void> {
  const temporary = join(dirname(file), `.${basename(file)}.${process.pid}.tmp`)
  try {
    await writeFile(temporary, text)
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    fail((error as Error).message)
  }
}

/** A source that imports no other modules is returned as it is; otherwise one module with everything that it imports. */
async function bundle(file: string, text: string): Promise<BuiltModule> {
  checkSyntax(text, file)
  const foreign = foreignImport(text)
  if (foreign === undefined) return { code: text, inputs: [file] }
  const { build } = await loadBundler(file, foreign)
  const options = {
    entryPoints: [resolve(file)],
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    target: 'es2023',
    charset: 'utf8',
    // Data beside the source.
    loader: { '.csv': 'text', '.txt': 'text', '.bin': 'binary', '.mmdb': 'binary' },
    logLevel: 'silent',
    external: ['@proxy/plugin', ...[...permittedModules].flatMap((name) => [name, `node:${name}`])],
  }
  const neutral = { ...options, platform: 'neutral', mainFields: ['module', 'main'], conditions: ['import'] }
  // Packages that import other modules of Node often have a build for browsers without them.
  const browser = { ...options, platform: 'browser', mainFields: ['browser', 'module', 'main'], conditions: ['import', 'browser'] }
  try {
    const { outputFiles, metafile } = await build(neutral).catch(() => build(browser))
    return { code: outputFiles[0]?.text ?? '', inputs: Object.keys(metafile.inputs) }
  } catch (error) {
    return fail(describeErrors(error, file))
  }
}

function checkSyntax(text: string, file: string): void {
  try {
    stripTypes(text, file)
  } catch (error) {
    if (error instanceof PluginSyntaxError) fail(error.message)
    throw error
  }
}

/** The first module that a plugin cannot import in the data plane. Text that only looks like an import is bundled in vain, which does no harm. */
function foreignImport(text: string): string | undefined {
  for (const [, name = ''] of text.matchAll(/\b(?:from|import)\s*\(?\s*['"]([^'"\n]+)['"]/g)) {
    if (name !== '@proxy/plugin' && !permittedModules.has(name.replace(/^node:/, ''))) return name
  }
  return undefined
}

async function loadBundler(file: string, imported: string): Promise<Bundler> {
  try {
    return createRequire(resolve(file))('esbuild') as Bundler
  } catch {
    if (isBuiltin(imported)) fail(`${file}: ${describeForeign(imported)}`)
    return fail(
      `${file} imports ${JSON.stringify(imported)}, and esbuild, which bundles it, is not installed; run npm install --save-dev esbuild in ${dirname(file)}`,
    )
  }
}

function describeErrors(error: unknown, file: string): string {
  const { errors = [] } = error as { readonly errors?: readonly BundleError[] }
  if (errors.length === 0) return `${file}: ${error instanceof Error ? error.message : String(error)}`
  return errors
    .map(({ text, location }) => {
      const at = location === null ? file : `${relative('', location.file)}:${location.line}:${location.column + 1}`
      return `${at}: ${describeError(text, location)}`
    })
    .join('\n')
}

/** `text` of esbuild, with what can be imported if it does not find a module. */
function describeError(text: string, location: BundleError['location']): string {
  const [, name] = /^Could not resolve "([^"./][^"]*)"$/.exec(text) ?? []
  if (name === undefined) return text
  if (!isBuiltin(name) && !name.startsWith('node:')) return `${text}: install the package; without one, ${describeForeign(name)}`
  const isOfPackage = location !== null && /(^|[/\\])node_modules[/\\]/.test(location.file)
  return `${describeForeign(name)}${isOfPackage ? '; the package has no build for browsers without it, use another one' : ''}`
}
