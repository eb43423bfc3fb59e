import { withCode } from '#api/messages/code.ts'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import schema from '#gen/config/schema.json' with { type: 'json' }
import type { Definitions } from '#api/schema.ts'
import { toNeutralNames } from '#api/v1alpha1/real-names.ts'
import type { ConfigFile, GatewayRef, ProcessConfig } from '#gen/config/types.ts'
import { readDocument } from './document.ts'
import { flattenFile } from './flatten.ts'
import { ConfigFileError, digestOf, type ConfigFileOptions, type FileDigests, describeReadError } from './problem.ts'
import { findDanglingReferences, findRefusedReferences, resolveReferences } from './references.ts'
import { dialRulesOf } from './addresses.ts'
import { expandShortForms } from '../short/forms.ts'
import type { ReadOpenApi } from '../short/mcp.ts'
import { findWarnings } from './warnings.ts'
import type { ConfigMessage } from '../store.ts'
import { validate, type SchemaProblem } from '../validate.ts'

/** The generated schema, which the bundle contains already. */
const definitions = schema.$defs as unknown as Definitions

/** Content of a valid file. */
export interface LoadedConfigFile {
  /** Settings of the process as written; environment variables override them. */
  readonly process: ProcessConfig
  readonly messages: readonly ConfigMessage[]
  /** Values that are accepted but cannot work: `file:line:column: path: problem`. */
  readonly warnings: readonly string[]
  /** Ports that anyone can use, in the same form. */
  readonly notes: readonly string[]
  /** The file itself, and the certificates, keys and sources of plugins that it names. */
  readonly digests: FileDigests
}

/**
 * Reads a `-f` file: YAML or JSON, checked against the schema `ConfigFile` of gen/config/schema.json.
 * @throws ConfigFileError naming each problem by file, line, column and path
 */
export async function loadConfigFile(path: string, options: ConfigFileOptions = {}): Promise<LoadedConfigFile> {
  const digests = new Map<string, string | undefined>()
  const bytes =
    options.text ??
    (await readFile(path).catch((error: unknown) => {
      digests.set(resolve(path), undefined)
      throw new ConfigFileError([withCode(`${path}: ${describeReadError(error)}`, 'PX3001')], digests)
    }))
  digests.set(resolve(path), digestOf(bytes))
  const fail = (problems: readonly string[]): never => {
    throw new ConfigFileError(problems, digests)
  }

  const document = readDocument(path, bytes.toString(), options, digests)
  if ('problems' in document) return fail(document.problems)
  const { value, locate, sourceOf, conceal } = document
  const schemaProblems = validate('ConfigFile', value, sourceOf)
  if (schemaProblems.length > 0) return fail(schemaProblems.map(locate))

  const written = toNeutralNames(value, 'ConfigFile', definitions) as ConfigFile
  const gateway = gatewayOf(written, options)
  const readBytes = createReader(path, digests)
  const read = (name: string): string => readBytes(name).toString()
  const long = expandShortForms(written, { gateway, written: value as ConfigFile, path, readOpenApi: await createReadOpenApi(written, readBytes) })
  if (long.problems.length > 0) return fail(long.problems.map((problem) => locate({ ...problem, text: conceal(problem.text) })))
  const { file, originOf } = long
  // Fills in the defaults of the schema, as if the file were written in the long form.
  if (file !== written) {
    const expansionProblems = validate('ConfigFile', file)
    if (expansionProblems.length > 0)
      return fail(expansionProblems.map((problem) => locate({ ...problem, path: originOf(problem.path), text: conceal(problem.text) })))
  }
  // Beside a config stream, references may lead to its backends and services.
  const isAlone = options.placeholders !== 'literal'
  const references = resolveReferences(file, gateway)
  const flat = flattenFile(file, { gateway, read, isAlone, sourceOf, originOf })
  const { messages, problems } = flat
  if (problems.length > 0) return fail(distinct(problems.map((problem) => locate({ ...problem, text: conceal(problem.text) }))))
  const suspects = [
    ...[...long.warnings, ...flat.warnings].map((warning) => ({ ...warning, text: conceal(warning.text) })),
    ...(await findWarnings('ConfigFile', value)),
  ]
  const dangling = isAlone ? [...findDanglingReferences(references, messages), ...findRefusedReferences(references, dialRulesOf(file))] : []
  const warnings = [
    ...document.warnings,
    ...suspects.map((warning) => locate(withoutValue(warning, sourceOf(warning.path)))),
    ...dangling.map((warning) => locate({ ...warning, path: originOf(warning.path), text: conceal(warning.text) })),
  ]
  return { process: file.config ?? {}, messages, warnings, notes: flat.notes.map(locate), digests }
}

/** Reads files that the config file names, relative to it. */
export function createReader(path: string, digests: Map<string, string | undefined>): (name: string) => Buffer {
  return (name) => {
    const absolute = resolve(dirname(path), name)
    digests.set(absolute, undefined)
    try {
      const content = readFileSync(absolute)
      digests.set(absolute, digestOf(content))
      return content
    } catch (error) {
      throw new Error(`${name}: ${describeReadError(error)}`, { cause: error })
    }
  }
}

/** Compiles OpenAPI documents of MCP servers. The compiler is loaded if the file has one. */
export async function createReadOpenApi({ mcp = {} }: ConfigFile, read: (name: string) => Buffer): Promise<ReadOpenApi> {
  if (Object.values(mcp).every((server) => typeof server !== 'object' || server === null || !('openapi' in server))) return () => ''
  const [{ compileOpenApi }, { DocumentError, parseDocument }] = await Promise.all([import('#api/openapi/compile.ts'), import('#api/openapi/document.ts')])
  return (name) => {
    try {
      return compileOpenApi(parseDocument(read(name)), {})
    } catch (error) {
      if (error instanceof DocumentError) return `${name}: ${error.message}`
      return error instanceof Error ? error.message : String(error)
    }
  }
}

/** Gateway of the listeners of a file. */
export function gatewayOf({ config }: ConfigFile, { namespace, gateway }: ConfigFileOptions): GatewayRef {
  return { namespace: namespace ?? config?.namespace ?? 'default', name: gateway ?? config?.gateway ?? 'config' }
}

const distinct = (lines: readonly string[]): string[] => [...new Set(lines)]

/** A warning about a value that comes from a placeholder: the text could quote the value, except those about API keys and hosts. */
const withoutValue = (problem: SchemaProblem, source: string | undefined): SchemaProblem =>
  source === undefined || problem.path[0] === 'secrets' || problem.code === 'PX1361'
    ? problem
    : { ...problem, text: `the value of ${source} cannot work here: it is not a valid expression, pattern or credential` }
