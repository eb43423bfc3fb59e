import { parseDuration } from '#api/duration.ts'
import type { LedgerConfig } from '#gen/config/types.ts'
import { compileExpression, findProblem, readsRequestBody, readsResponseBody } from '../expression/program.ts'

/** Settings of the ledger with their defaults. Plain data, because worker threads receive them. */
export interface LedgerSettings {
  /** Path of the SQLite file. */
  readonly path: string
  /** Records older than this are deleted. */
  readonly retentionMs: number
  /** Share of the requests that are neither LLM nor MCP and are recorded, from 0 to 1. */
  readonly httpSampling: number
  /** CEL expression of the user. */
  readonly user: string
  /** CEL expression of the team. */
  readonly team: string
}

const DEFAULT_RETENTION_MS = 90 * 86_400_000
const MIN_RETENTION_MS = 60_000
const DEFAULT_USER = 'coalesce(jwt.sub, basicAuth.username)'
const DEFAULT_TEAM = 'coalesce(apiKey.metadata.team, jwt.team)'

/** Reads `config.ledger` of the config file. Returns a text that names the field, its value and a fix if it is invalid. */
export function readLedgerSettings(section: LedgerConfig): LedgerSettings | string {
  const { sqlite, retention, httpSampling = 0, user = DEFAULT_USER, team = DEFAULT_TEAM } = section
  if (!sqlite.path.startsWith('/')) return `config.ledger.sqlite.path is ${JSON.stringify(sqlite.path)}: give an absolute path`
  const retentionMs = retention === undefined ? DEFAULT_RETENTION_MS : parseDuration(retention)
  if (retentionMs === undefined || retentionMs < MIN_RETENTION_MS)
    return `config.ledger.retention is ${JSON.stringify(retention)}: give a duration of at least 1m, such as 720h`
  if (!(httpSampling >= 0 && httpSampling <= 1)) return `config.ledger.httpSampling is ${httpSampling}: give a number from 0 to 1`
  const problem = checkExpression('user', user) ?? checkExpression('team', team)
  return problem ?? { path: sqlite.path, retentionMs, httpSampling, user, team }
}

function checkExpression(field: string, source: string): string | undefined {
  const problem = findProblem(source, 'log')
  if (problem !== undefined) return `config.ledger.${field} is ${JSON.stringify(source)}: ${problem}`
  const programs = [compileExpression(source, 'log')]
  return readsRequestBody(programs) || readsResponseBody(programs)
    ? `config.ledger.${field} is ${JSON.stringify(source)}: bodies are not available; use claims, metadata of API keys, or headers`
    : undefined
}
