import { findBudgetProblems } from '#api/budget.ts'
import { anywhere, compile, formatDiagnostic, isParseError } from '#api/cel/index.ts'
import { readHtpasswdLine } from '#api/credentials/htpasswd.ts'
import { findKeySetProblem } from '#api/credentials/key-set.ts'
import { findKeyProblems } from '#api/credentials/key-weakness.ts'
import { findModelProblems } from '#api/model-problems.ts'
import { compileRegex, isRegexError } from '#api/regex/index.ts'
import type { AIBackend, AIModelTarget, APIKeyAuthentication, ConfigFile } from '#gen/config/types.ts'
import type { SchemaProblem } from '../validate.ts'
import { walkDefinitions } from './walk.ts'

/** Schema definitions whose values are checked beyond what JSON Schema can state. */
export const checkedDefinitions = [
  'CELExpression',
  'Regex',
  'PathMatch',
  'ValueMatch',
  'JWKS',
  'BasicAuthentication',
  'Budget',
  'AIBackend',
  'ConfigFile',
] as const
export type CheckedDefinition = (typeof checkedDefinitions)[number]

type Path = SchemaProblem['path']
type Report = (path: Path, text: string) => void

function checkMatch({ value }: { value: string }, path: Path, report: Report): void {
  const regex = compileRegex(value)
  if (isRegexError(regex)) report([...path, 'value'], `is not a valid RE2 expression: ${regex.error}; it matches nothing`)
}

/** Entries of the secrets that each policy of API keys accepts. */
function checkApiKeys(file: ConfigFile, report: Report): void {
  const reported = new Set<string>()
  walkDefinitions('ConfigFile', file, (name, at) => {
    if (name !== 'APIKeyAuthentication') return
    const { secretRef, secretSelector } = at as APIKeyAuthentication
    const keys = new Set([secretRef?.secret, ...(secretSelector?.secrets ?? [])])
    const entries = (file.secrets ?? []).flatMap(({ key, data = {} }, index) =>
      keys.has(key) ? Object.entries(data).map(([entry, value]) => ({ path: ['secrets', index, 'data', entry], entry, value })) : [],
    )
    const pairs = entries.map(({ entry, value }) => [entry, value] as const)
    for (const [index, text] of findKeyProblems(pairs, Date.now())) {
      const { path = [] } = entries[index] ?? {}
      // Several policies may use the same Secret.
      const id = JSON.stringify([path, text])
      if (!reported.has(id)) report(path, text)
      reported.add(id)
    }
  })
}

/** Checks whose results the operator would report in a status, by definition. */
export const checks: Readonly<Record<CheckedDefinition, (value: never, path: Path, report: Report) => void>> = {
  CELExpression: (text: string, path, report) => {
    const result = compile(text, anywhere)
    if (isParseError(result)) report(path, `${result.problems.map(formatDiagnostic).join('; ')}; it fails whenever it is evaluated`)
  },
  Regex: ({ matches = [] }: { matches?: string[] }, path, report) => {
    for (const [index, pattern] of matches.entries()) {
      const regex = compileRegex(pattern)
      if (isRegexError(regex)) report([...path, 'matches', index], `is not a valid RE2 expression: ${regex.error}; it rejects everything`)
    }
  },
  PathMatch: checkMatch,
  ValueMatch: checkMatch,
  JWKS: ({ inline }: { inline?: string }, path, report) => {
    const problem = inline === undefined ? undefined : findKeySetProblem(inline)?.problem
    if (problem !== undefined) report([...path, 'inline'], problem)
  },
  BasicAuthentication: ({ users = [] }: { users?: string[] }, path, report) => {
    for (const [index, line] of users.entries()) {
      const user = readHtpasswdLine(line)
      if (user !== undefined && 'problem' in user) report([...path, 'users', index], `${user.problem}; it is skipped`)
    }
  },
  ConfigFile: (file: ConfigFile, _path, report) => checkApiKeys(file, report),
  Budget: (budget: Readonly<Record<string, unknown>>, path, report) => {
    for (const { field, problem } of findBudgetProblems(budget)) report([...path, field], problem)
  },
  AIBackend: ({ models = [] }: AIBackend, path, report) => {
    const reduce = (targets: readonly AIModelTarget[]) => targets.map((target) => ({ ...target, id: JSON.stringify(target.backendRef) }))
    const lists = models.map(({ name, to, rules = [], fallback = [] }) => ({
      name,
      to: to && reduce(to),
      rules: rules.map((rule) => ({ ...rule, to: reduce(rule.to) })),
      fallback: fallback.map((entry) => ({ to: reduce(entry.to) })),
    }))
    for (const problem of findModelProblems(lists)) report([...path, ...problem.path], problem.text)
  },
}
