import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import schema from '#gen/config/schema.json' with { type: 'json' }
import type { Definitions } from '#api/schema.ts'
import { toNeutralNames } from '#api/v1alpha1/real-names.ts'
import type { ConfigFile, ProcessConfig } from '#gen/config/types.ts'
import { flattenFile } from './flatten.ts'
import { ConfigFileError, digestOf, type ConfigFileOptions, type FileDigests } from './problem.ts'
import { findWarnings } from './warnings.ts'
import { parseYaml } from './yaml.ts'
import type { ConfigMessage } from '../store.ts'
import { formatProblem, validate, type SchemaProblem } from '../validate.ts'

/** The generated schema, which the bundle contains already. */
const definitions = schema.$defs as unknown as Definitions

/** Content of a valid file. */
export interface LoadedConfigFile {
  /** Settings of the process as written; environment variables override them. */
  readonly process: ProcessConfig
  readonly messages: readonly ConfigMessage[]
  /** Values that are accepted but cannot work: `file:line: path: problem`. */
  readonly warnings: readonly string[]
  /** The file itself and the certificates and keys that it names. */
  readonly digests: FileDigests
}

/**
 * Reads a `-f` file: YAML or JSON, checked against the schema `ConfigFile` of gen/config/schema.json.
 * @throws ConfigFileError naming each problem by file, line and path
 */
export async function loadConfigFile(path: string, options: ConfigFileOptions = {}): Promise<LoadedConfigFile> {
  const digests = new Map<string, string | undefined>()
  const bytes =
    options.text ??
    (await readFile(path).catch((error: unknown) => {
      digests.set(resolve(path), undefined)
      throw new ConfigFileError([`${path}: ${describeReadError(error)}`], digests)
    }))
  digests.set(resolve(path), digestOf(bytes))
  const fail = (problems: readonly string[]): never => {
    throw new ConfigFileError(problems, digests)
  }

  const text = bytes.toString()
  const kind = findManifestKind(text)
  if (kind !== undefined) return fail([`${path}: is a Kubernetes manifest of kind ${kind}, not a config file; run its directory (make run DIR=...)`])
  const document = parseYaml(text)
  if ('problems' in document) return fail(document.problems.map((problem) => `${path}:${problem.line}: ${problem.text}`))
  const { value, lineOf } = document
  const locate = (problem: SchemaProblem): string => `${path}:${lineOf(problem.path)}: ${formatProblem(problem)}`
  const schemaProblems = validate('ConfigFile', value)
  if (schemaProblems.length > 0) return fail(schemaProblems.map(locate))

  const file = toNeutralNames(value, 'ConfigFile', definitions) as ConfigFile
  const gateway = { namespace: options.namespace ?? file.config?.namespace ?? 'default', name: options.gateway ?? file.config?.gateway ?? 'config' }
  const { messages, problems } = flattenFile(file, gateway, (name) => {
    const absolute = resolve(dirname(path), name)
    digests.set(absolute, undefined)
    try {
      const content = readFileSync(absolute)
      digests.set(absolute, digestOf(content))
      return content.toString()
    } catch (error) {
      throw new Error(`${name}: ${describeReadError(error)}`, { cause: error })
    }
  })
  if (problems.length > 0) return fail(problems.map(locate))
  return { process: file.config ?? {}, messages, warnings: (await findWarnings('ConfigFile', value)).map(locate), digests }
}

/** The kind of a Kubernetes manifest. A config file has no field apiVersion. */
function findManifestKind(text: string): string | undefined {
  if (!/^\s{0,2}"?apiVersion"?\s*:/m.test(text)) return undefined
  return /^\s{0,2}"?kind"?\s*:\s*"?(\w+)/m.exec(text)?.[1]
}

const readErrors: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'no permission to read it',
  EISDIR: 'is a directory; name a file',
  ENOTDIR: 'part of the path is not a directory',
}

function describeReadError(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return readErrors[code] ?? `cannot be read: ${message}`
}
