import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { stringify } from 'yaml'
import { permittedModules, PluginSyntaxError, stripTypes } from '#api/plugin/syntax.ts'
import { CommandError, UsageError } from './output.ts'
import type { Command } from './types.ts'

/** The API server accepts no larger ConfigMap. */
const MAX_SOURCE_BYTES = 1_048_576
const KEY = 'index.ts'

/** The part of esbuild that is used. It belongs to the project of the plugin, so that proxyctl needs no package for the machine. */
interface Bundler {
  build(options: object): Promise<{ readonly outputFiles: readonly { readonly text: string }[] }>
}

interface BundleError {
  readonly text: string
  readonly location: { readonly file: string; readonly line: number; readonly column: number } | null
}

/** Source that `proxyctl plugin init` writes. */
const pluginSource = `import { definePlugin } from '@proxy/plugin'

export default definePlugin<{ tenants: string[] }>({
  configSchema: { type: 'object', properties: { tenants: { type: 'array', items: { type: 'string' } } }, required: ['tenants'] },
  setup: ({ config, metrics }) => ({
    async request(c, next) {
      const tenant = c.req.header('x-tenant') ?? ''
      if (!config.tenants.includes(tenant)) {
        metrics.count('unknown_tenant')
        return c.json({ error: 'unknown tenant' }, 403)
      }
      await next()
      c.header('x-served-for', tenant)
    },
  }),
})
`

/** A gateway whose route has the plugin. The route responds itself, so that the plugin can be tried without an upstream. `name` is a scalar of YAML. */
const pluginManifests = (name: string): string => `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: ${name} }
spec:
  gatewayClassName: proxy
  listeners: [{ name: http, port: 8080, protocol: HTTP }]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: ${name} }
spec:
  parentRefs: [{ name: ${name} }]
  rules:
    - matches: [{ path: { type: PathPrefix, value: / } }]
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: { name: ${name} }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: ${name} }]
  traffic:
    directResponse: { status: 200, body: "behind the plugin\\n" }
    plugins:
      - name: ${name}
        source: { configMapRef: { name: ${name}, key: index.ts } }
        config: { tenants: [a, b] }
`

/** Writes a directory with a plugin, its ConfigMap, and manifests of a gateway that uses it. */
export const runPluginInit: Command = async ({ args, output }) => {
  const [directory, ...rest] = args
  if (directory === undefined || rest.length > 0) throw new UsageError('plugin init takes one directory')
  const name = nameOf(resolve(directory))
  const files = {
    'index.ts': pluginSource,
    'manifests.yaml': pluginManifests(stringify(name).trim()),
    'plugin.yaml': printManifest(createConfigMap(name, undefined, pluginSource)),
  }
  await mkdir(directory, { recursive: true }).catch((error: Error) => fail(error.message))
  for (const [file, text] of Object.entries(files)) await writeFile(join(directory, file), text, { flag: 'wx' }).catch((error: Error) => fail(error.message))
  const written = Object.keys(files).map((file) => join(directory, file))
  output.print({ files: written }, () => [
    ...written,
    `After an edit of ${KEY}: proxyctl plugin build ${join(directory, KEY)} ${name} --out ${join(directory, 'plugin.yaml')}`,
  ])
  return 0
}

/** Prints or writes the ConfigMap of a plugin, with the modules that it imports. */
export const runPluginBuild: Command = async ({ args, options, output }) => {
  const [file, given, ...rest] = args
  if (file === undefined || rest.length > 0) throw new UsageError('plugin build takes one file, and the name of the ConfigMap')
  const name = given ?? nameOf(dirname(resolve(file)))
  if (!/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name))
    throw new UsageError(`${JSON.stringify(name)} is not the name of a ConfigMap; name it after the file`)
  const text = await readFile(file, 'utf8').catch((error: Error) => fail(error.message, 'PX6009'))
  const code = await bundle(file, text)
  const size = Buffer.byteLength(code)
  if (size > MAX_SOURCE_BYTES) fail(`${file}: ${size} bytes with its modules; a ConfigMap holds at most ${MAX_SOURCE_BYTES}`)
  const map = createConfigMap(name, options.namespace, code)
  if (options.out === undefined) {
    output.print(map, () => [printManifest(map).trimEnd()])
    return 0
  }
  await replaceFile(options.out, printManifest(map))
  output.print({ file: options.out, bytes: size }, () => [`${options.out}: ConfigMap ${name}, ${size} bytes of source`])
  return 0
}

function fail(message: string, code: 'PX6009' | 'PX6013' = 'PX6013'): never {
  throw new CommandError(code, message)
}

/** Name of the directory as the name of an object. */
function nameOf(directory: string): string {
  const name = basename(directory)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, 60)
    .replace(/-$/, '')
  return name || 'plugin'
}

const createConfigMap = (name: string, namespace: string | undefined, code: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...(namespace !== undefined && { namespace }) },
  data: { [KEY]: code },
})

const printManifest = (value: object): string => stringify(value, { lineWidth: 0 })

/** Replaces a file at once: a gateway that watches the directory never reads a part of it. */
async function replaceFile(file: string, text: string): Promise<void> {
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
async function bundle(file: string, text: string): Promise<string> {
  checkSyntax(text, file)
  const foreign = foreignImport(text)
  if (foreign === undefined) return text
  const { build } = await loadBundler(file, foreign)
  try {
    const { outputFiles } = await build({
      entryPoints: [resolve(file)],
      bundle: true,
      write: false,
      format: 'esm',
      platform: 'neutral',
      mainFields: ['module', 'main'],
      conditions: ['import'],
      target: 'es2023',
      charset: 'utf8',
      logLevel: 'silent',
      external: ['@proxy/plugin', ...[...permittedModules].flatMap((name) => [name, `node:${name}`])],
    })
    return outputFiles[0]?.text ?? ''
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
    return fail(
      `${file} imports ${JSON.stringify(imported)}, and esbuild, which bundles it, is not installed; run npm install --save-dev esbuild in ${dirname(file)}`,
    )
  }
}

function describeErrors(error: unknown, file: string): string {
  const { errors = [] } = error as { readonly errors?: readonly BundleError[] }
  if (errors.length === 0) return `${file}: ${error instanceof Error ? error.message : String(error)}`
  return errors
    .map(({ text, location }) => (location === null ? `${file}: ${text}` : `${relative('', location.file)}:${location.line}:${location.column + 1}: ${text}`))
    .join('\n')
}
