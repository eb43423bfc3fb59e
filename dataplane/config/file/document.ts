import { withCode } from '#api/messages/code.ts'
import { REDACTED } from '#api/names.ts'
import { findSecrets } from '#api/secret-fields.ts'
import { createResolve } from './environment.ts'
import { maskPlaceholders, type MaskedText } from './placeholders.ts'
import type { ConfigFileOptions } from './problem.ts'
import { keepPlaceholders, substitute, type Substituted } from './substitute.ts'
import { parseYaml, positionAt, type Position } from './yaml.ts'
import { formatProblem, type SchemaProblem, type SourceOf } from '../validate.ts'

/** A parsed config file whose placeholders have been replaced, not validated. */
export interface ConfigDocument {
  readonly value: unknown
  /** `file:line:column: path: problem`, without credentials that are written into the file. */
  locate(problem: SchemaProblem): string
  /** The string at a path as it is written, if it has placeholders. Messages show it instead of the value. */
  readonly sourceOf: SourceOf
  /** Replaces values of placeholders in a message by the placeholders. */
  conceal(text: string): string
  readonly warnings: readonly string[]
}

/** Values of placeholders that are shorter than this are too common to be recognized in a message. */
const MIN_CONCEALED = 4

/**
 * Parses the text of a config file and replaces its placeholders; adds the files that they name to `digests`.
 * With `isSymbolic` they stay as they are written where possible.
 */
export function readDocument(
  path: string,
  text: string,
  { env = process.env, placeholders = 'resolve' }: ConfigFileOptions,
  digests: Map<string, string | undefined>,
  isSymbolic = false,
): ConfigDocument | { readonly problems: readonly string[] } {
  const at = ({ line, column }: Position): string => `${path}:${line}:${column}`
  const kind = findManifestKind(text)
  if (kind !== undefined)
    return { problems: [withCode(`${path}: is a Kubernetes manifest of kind ${kind}, not a config file; run its directory (make run DIR=...)`, 'PX3002')] }
  let masked: MaskedText | undefined
  try {
    masked = placeholders === 'literal' ? undefined : maskPlaceholders(text)
  } catch (error) {
    return { problems: [withCode(`${path}: ${error instanceof Error ? error.message : String(error)}`, 'PX3004')] }
  }
  const parsed = parseYaml(masked?.text ?? text)
  if ('problems' in parsed)
    return { problems: parsed.problems.map((problem) => withCode(`${at(problem)}: ${masked?.unmask(problem.text) ?? problem.text}`, 'PX3003')) }
  const secrets = findSecrets(parsed.value).map((secret) => [secret, REDACTED] as const)
  const locate = (problem: SchemaProblem): string =>
    `${at(parsed.positionOf(problem.path))}: ${formatProblem({ ...problem, text: concealValues(problem.text, secrets) })}`
  if (masked === undefined)
    return {
      value: parsed.value,
      locate,
      sourceOf: () => undefined,
      conceal: (message) => message,
      warnings: placeholders === 'literal' ? findLiterals(path, text) : [],
    }

  const resolve = createResolve({ path, env, digests })
  const { value, problems, sourceOf, values } = substitute(parsed.value, masked, isSymbolic ? keepPlaceholders(resolve) : resolve, isSymbolic)
  if (problems.length > 0)
    return {
      problems: problems.map(
        ({ offset, path: place, text: cause }) => `${at(positionAt(text, offset))}: ${formatProblem({ path: place, text: cause, code: 'PX3004' })}`,
      ),
    }
  return { value, locate, sourceOf, conceal: (message) => concealValues(message, values), warnings: [] }
}

function concealValues(message: string, values: Substituted['values']): string {
  const longest = values.filter(([value]) => value.length >= MIN_CONCEALED).toSorted((a, b) => b[0].length - a[0].length)
  return longest.reduce((text, [value, placeholder]) => text.replaceAll(value, () => placeholder), message)
}

/** A placeholder in a file of which none is replaced is probably a mistake. */
function findLiterals(path: string, text: string): string[] {
  const match = /\$\{(?:[A-Za-z_]\w*(?::-[^}\n]*)?|file:[^}\n]+)\}/.exec(text)
  if (match === null) return []
  const { line, column } = positionAt(text, match.index)
  return [withCode(`${path}:${line}:${column}: ${match[0]} is not replaced: placeholders are text in a file that is used together with XDS_ADDRESS`, 'PX3011')]
}

/** The kind of a Kubernetes manifest. A config file has no field apiVersion. */
function findManifestKind(text: string): string | undefined {
  if (!/^\s{0,2}"?apiVersion"?\s*:/m.test(text)) return undefined
  return /^\s{0,2}"?kind"?\s*:\s*"?(\w+)/m.exec(text)?.[1]
}
