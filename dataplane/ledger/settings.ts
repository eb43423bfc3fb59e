import { parseDuration } from '#api/duration.ts'
import { findRelativePath, readServerUrl } from '#api/server-url.ts'
import type { LedgerConfig } from '#gen/config/types.ts'
import { compileExpression, findProblem, readsRequestBody, readsResponseBody } from '../expression/program.ts'
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

const POSTGRES_URL = {
  protocol: /^postgres(ql)?:$/,
  what: 'a database',
  form: 'give postgres://USER@HOST:PORT/DATABASE, and the password in passwordFile',
  hasQuery: true,
}
const MODES: Readonly<Record<string, boolean>> = { disable: false, 'verify-full': true }

function readPostgres(section: Postgres, defaultOwner: string): StoreSettings | string {
  const field = 'config.ledger.postgres'
  const database = readDatabase(field, section, POSTGRES_URL, defaultOwner)
  if (typeof database === 'string') return database
  const { url, settings } = database
  const unknown = [...url.searchParams.keys()].find((name) => name !== 'sslmode')
  if (unknown !== undefined) return `${field}.url has the parameter ${JSON.stringify(unknown)}: only sslmode is supported`
  const mode = url.searchParams.get('sslmode') ?? 'verify-full'
  const isTls = MODES[mode]
  if (isTls === undefined) return `${field}.url has sslmode=${JSON.stringify(mode)}: use disable or verify-full`
  return findRelativePath(field, filesOf(section)) ?? { kind: 'postgres', ...settings, port: url.port === '' ? 5432 : Number(url.port), isTls }
}

const CLICKHOUSE_URL = {
  protocol: /^https?:$/,
  what: 'a database',
  form: 'give https://USER@HOST:PORT/DATABASE, and the password in passwordFile',
}

function readClickHouse(section: ClickHouse, defaultOwner: string): StoreSettings | string {
  const field = 'config.ledger.clickhouse'
  const database = readDatabase(field, section, CLICKHOUSE_URL, defaultOwner)
  if (typeof database === 'string') return database
  const isTls = database.url.protocol === 'https:'
  // A URL has no port if it is that of HTTP.
  const [, port] = /^[^/]*\/\/[^/]*:(\d+)(?:\/|$)/.exec(section.url) ?? []
  return (
    findRelativePath(field, filesOf(section)) ?? {
      kind: 'clickhouse',
      ...database.settings,
      port: port === undefined ? (isTls ? 8443 : 8123) : Number(port),
      isTls,
    }
  )
}

/** What the sections of databases have in common: the URL, and the settings that do not depend on its scheme. */
function readDatabase(field: string, section: Postgres | ClickHouse, form: Parameters<typeof readServerUrl>[1], defaultOwner: string) {
  const server = readServerUrl(section.url, form)
  if (typeof server === 'string') return `${field}.url ${server}`
  const { url, host, user, password, path: database } = server
  if (user === '' || database === '' || database.includes('/')) return `${field}.url names no ${user === '' ? 'user' : 'database'}: ${form.form}`
  return { url, settings: { host, database, user, password, ...filesOf(section), owner: section.owner ?? defaultOwner } }
}

const filesOf = ({ passwordFile, caFile }: Postgres | ClickHouse) => ({ passwordFile, caFile })
