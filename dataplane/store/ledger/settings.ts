import { parseDuration } from '#api/duration.ts'
import { findRelativePath, readDatabaseUrl } from '#api/server-url.ts'
import type { LedgerConfig } from '#gen/config/types.ts'
import { compileExpression, findProblem, readsRequestBody, readsResponseBody } from '../../request/expression/program.ts'
import { readPostgresSettings } from '../postgres/settings.ts'
import type { StoreSettings } from './store.ts'

/** Settings of the ledger with their defaults. Plain data, because worker threads receive them. */
export interface LedgerSettings {
  readonly store: StoreSettings
  /** Records older than this are deleted. */
  readonly retentionMs: number
  /** Share of the requests that are neither LLM nor MCP and are recorded, from 0 to 1. */
  readonly httpSampling: number
  /** CEL expression of the user. */
  readonly user: string
  /** CEL expression of the team. */
  readonly team: string
  /** Bytes of the longest body that is stored; longer ones are cut. Undefined: no bodies are stored. */
  readonly bodyBytes: number | undefined
  /** Whether arguments and results of tools of MCP are bodies. */
  readonly storesToolBodies: boolean
}

const DEFAULT_BODY_BYTES = 16 * 1024
const MAX_BODY_BYTES = 256 * 1024

const DEFAULT_RETENTION_MS = 90 * 86_400_000
const MIN_RETENTION_MS = 60_000
type Postgres = NonNullable<LedgerConfig['postgres']>
type ClickHouse = NonNullable<LedgerConfig['clickhouse']>
const DEFAULT_USER = 'coalesce(jwt.sub, basicAuth.username)'
const DEFAULT_TEAM = 'coalesce(apiKey.metadata.team, jwt.team)'

/**
 * Reads `config.ledger` of the config file. Returns a text that names the field, its value and a fix if it is invalid.
 * @param owner default of `postgres.owner` and `clickhouse.owner`: `<namespace>/<gateway>`
 */
export function readLedgerSettings(section: LedgerConfig, owner: string): LedgerSettings | string {
  const { retention, bodies, httpSampling = 0, user = DEFAULT_USER, team = DEFAULT_TEAM } = section
  const store = readStore(section, owner)
  if (typeof store === 'string') return store
  const retentionMs = retention === undefined ? DEFAULT_RETENTION_MS : parseDuration(retention)
  if (retentionMs === undefined || retentionMs < MIN_RETENTION_MS)
    return `config.ledger.retention is ${JSON.stringify(retention)}: give a duration of at least 1m, such as 720h`
  if (!(httpSampling >= 0 && httpSampling <= 1)) return `config.ledger.httpSampling is ${httpSampling}: give a number from 0 to 1`
  const bodyBytes = bodies && (bodies.maxBytes ?? DEFAULT_BODY_BYTES)
  if (bodyBytes !== undefined && !(bodyBytes >= 1 && bodyBytes <= MAX_BODY_BYTES))
    return `config.ledger.bodies.maxBytes is ${bodyBytes}: give a number from 1 to ${MAX_BODY_BYTES}`
  const problem = checkExpression('user', user) ?? checkExpression('team', team)
  return problem ?? { store, retentionMs, httpSampling, user, team, bodyBytes, storesToolBodies: bodies?.tools ?? false }
}

function checkExpression(field: string, source: string): string | undefined {
  const problem = findProblem(source, 'log')
  if (problem !== undefined) return `config.ledger.${field} is ${JSON.stringify(source)}: ${problem}`
  const programs = [compileExpression(source, 'log')]
  return readsRequestBody(programs) || readsResponseBody(programs)
    ? `config.ledger.${field} is ${JSON.stringify(source)}: bodies are not available; use claims, metadata of API keys, or headers`
    : undefined
}

function readStore({ sqlite, postgres, clickhouse }: LedgerConfig, owner: string): StoreSettings | string {
  if ([sqlite, postgres, clickhouse].filter((each) => each !== undefined).length !== 1)
    return 'config.ledger needs exactly one of sqlite, postgres and clickhouse'
  if (sqlite !== undefined) return findRelativePath('config.ledger.sqlite', sqlite) ?? { kind: 'sqlite', path: sqlite.path }
  if (postgres !== undefined) return readPostgres(postgres, owner)
  return clickhouse === undefined ? 'config.ledger.clickhouse is missing' : readClickHouse(clickhouse, owner)
}

function readPostgres(section: Postgres, defaultOwner: string): StoreSettings | string {
  const settings = readPostgresSettings('config.ledger.postgres', section)
  return typeof settings === 'string' ? settings : { kind: 'postgres', ...settings, owner: section.owner ?? defaultOwner }
}

const CLICKHOUSE_URL = {
  protocol: /^https?:$/,
  what: 'a database',
  form: 'give https://USER@HOST:PORT/DATABASE, and the password in passwordFile',
}

function readClickHouse(section: ClickHouse, defaultOwner: string): StoreSettings | string {
  const field = 'config.ledger.clickhouse'
  const server = readDatabaseUrl(section.url, CLICKHOUSE_URL)
  if (typeof server === 'string') return `${field}.url ${server}`
  const { url, host, user, password, path: database } = server
  const { passwordFile, caFile, owner = defaultOwner } = section
  const isTls = url.protocol === 'https:'
  // A URL has no port if it is that of HTTP.
  const [, port] = /^[^/]*\/\/[^/]*:(\d+)(?:\/|$)/.exec(section.url) ?? []
  return (
    findRelativePath(field, { passwordFile, caFile }) ?? {
      kind: 'clickhouse',
      host,
      port: port === undefined ? (isTls ? 8443 : 8123) : Number(port),
      database,
      user,
      password,
      passwordFile,
      isTls,
      caFile,
      owner,
    }
  )
}
