import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fail, quote } from './common.ts'
import { runNode, type Environment } from './node.ts'

const MAX_ERRORS = 20

/** Options for a plugin whose project has no tsconfig.json: that of the data plane, which removes types, and the globals of the Fetch standard. */
const defaults = {
  strict: true,
  target: 'es2024',
  lib: ['es2024', 'dom', 'dom.iterable'],
  module: 'esnext',
  moduleResolution: 'bundler',
  erasableSyntaxOnly: true,
  skipLibCheck: true,
  types: [],
}
/** Options that a check of one file needs, whatever the project has. */
const required = { noEmit: true, allowImportingTsExtensions: true, composite: false, incremental: false }

/**
 * Checks the types of a plugin and of the modules that it imports with the TypeScript of the plugin's own project and its package `@proxy/plugin`, by the nearest
 * tsconfig.json. Rejects with a ToolError that has the position of each error.
 */
export async function checkTypes(file: string, env: Environment): Promise<void> {
  const compiler = await findCompiler(file)
  requirePackage(file)
  const directory = await mkdtemp(join(tmpdir(), 'proxyctl-types-'))
  try {
    const project = findProject(dirname(resolve(file)))
    const config = {
      ...(project !== undefined && { extends: project }),
      compilerOptions: { ...(project === undefined && defaults), ...required },
      files: [resolve(file)],
      include: [],
    }
    const path = join(directory, 'tsconfig.json')
    await writeFile(path, JSON.stringify(config))
    let output = ''
    const onOutput = (text: string): void => void (output += text)
    const status = await runNode([compiler, '-p', path, '--pretty', 'false'], { env, onOutput, onError: onOutput })
    if (status !== 0) fail(describeErrors(output))
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function findCompiler(file: string): Promise<string> {
  let manifest
  try {
    manifest = createRequire(resolve(file)).resolve('typescript/package.json')
  } catch {
    return fail(`typescript, which checks types, is not installed; run npm install --save-dev typescript in ${dirname(file)}`)
  }
  const { bin } = JSON.parse(await readFile(manifest, 'utf8')) as { readonly bin: { readonly tsc: string } }
  return join(dirname(manifest), bin.tsc)
}

function requirePackage(file: string): void {
  try {
    createRequire(resolve(file)).resolve('@proxy/plugin')
  } catch {
    const sdk = quote(join(dirname(file), 'sdk'))
    fail(
      `@proxy/plugin is not installed, so that its types are not known; run proxyctl plugin package ${sdk} && npm install --save-dev ./sdk in ${dirname(file)}`,
    )
  }
}

function findProject(directory: string): string | undefined {
  const path = join(directory, 'tsconfig.json')
  if (existsSync(path)) return path
  return dirname(directory) === directory ? undefined : findProject(dirname(directory))
}

/** `file:line:column: message (code)`, one for each error. */
function describeErrors(output: string): string {
  const errors: string[] = []
  for (const line of output.trimEnd().split('\n')) {
    const [, path, row, column, code, message] = /^(.+)\((\d+),(\d+)\): error (TS\d+): (.*)$/.exec(line) ?? []
    if (path !== undefined) errors.push(`${relative('', resolve(path))}:${row}:${column}: ${message} (${code})`)
    // Lines that explain the error before them are indented.
    else if (/^\s/.test(line) && errors.length > 0) errors[errors.length - 1] += `\n${line}`
    else errors.push(line)
  }
  const hidden = errors.length - MAX_ERRORS
  return [...errors.slice(0, MAX_ERRORS), ...(hidden > 0 ? [`${hidden} more errors`] : [])].join('\n')
}
