import { parseDuration } from '#api/duration.ts'
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
  if (sqlite !== undefined)
    return sqlite.path.startsWith('/')
      ? { kind: 'sqlite', path: sqlite.path }
      : `config.ledger.sqlite.path is ${JSON.stringify(sqlite.path)}: give an absolute path`
  if (postgres !== undefined) return readPostgres(postgres, owner)
  return clickhouse === undefined ? 'config.ledger.clickhouse is missing' : readClickHouse(clickhouse, owner)
}

const URL_FORM = 'give postgres://USER@HOST:PORT/DATABASE, and the password in passwordFile'
const MODES: Readonly<Record<string, boolean>> = { disable: false, 'verify-full': true }

function readPostgres({ url: text, passwordFile, caFile, owner }: Postgres, defaultOwner: string): StoreSettings | string {
  const field = 'config.ledger.postgres'
  const url = URL.parse(text)
  // Not the text: it may hold a password.
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol) || url.hostname === '' || url.hash !== '')
    return `${field}.url is not the URL of a database: ${URL_FORM}`
  const [user, password, database] = [url.username, url.password, url.pathname.slice(1)].map(decode)
  if (user === undefined || password === undefined || database === undefined) return `${field}.url has a malformed escape: ${URL_FORM}`
  if (user === '' || database === '' || database.includes('/')) return `${field}.url names no ${user === '' ? 'user' : 'database'}: ${URL_FORM}`
  const unknown = [...url.searchParams.keys()].find((name) => name !== 'sslmode')
  if (unknown !== undefined) return `${field}.url has the parameter ${JSON.stringify(unknown)}: only sslmode is supported`
  const mode = url.searchParams.get('sslmode') ?? 'verify-full'
  const isTls = MODES[mode]
  if (isTls === undefined) return `${field}.url has sslmode=${JSON.stringify(mode)}: use disable or verify-full`
  for (const [name, path] of Object.entries({ passwordFile, caFile }))
    if (path !== undefined && !path.startsWith('/')) return `${field}.${name} is ${JSON.stringify(path)}: give an absolute path`
  return {
    kind: 'postgres',
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? 5432 : Number(url.port),
    database,
    user,
    password: password === '' ? undefined : password,
    passwordFile,
    isTls,
    caFile,
    owner: owner ?? defaultOwner,
  }
}

const CLICKHOUSE_FORM = 'give https://USER@HOST:PORT/DATABASE, and the password in passwordFile'

function readClickHouse({ url: text, passwordFile, caFile, owner }: ClickHouse, defaultOwner: string): StoreSettings | string {
  const field = 'config.ledger.clickhouse'
  const url = URL.parse(text)
  // Not the text: it may hold a password.
  if (url === null || !/^https?:$/.test(url.protocol) || url.hash !== '' || url.search !== '')
    return `${field}.url is not the URL of a database: ${CLICKHOUSE_FORM}`
  const [user, password, database] = [url.username, url.password, url.pathname.slice(1)].map(decode)
  if (user === undefined || password === undefined || database === undefined) return `${field}.url has a malformed escape: ${CLICKHOUSE_FORM}`
  if (user === '' || database === '' || database.includes('/')) return `${field}.url names no ${user === '' ? 'user' : 'database'}: ${CLICKHOUSE_FORM}`
  for (const [name, path] of Object.entries({ passwordFile, caFile }))
    if (path !== undefined && !path.startsWith('/')) return `${field}.${name} is ${JSON.stringify(path)}: give an absolute path`
  const isTls = url.protocol === 'https:'
  // A URL has no port if it is that of HTTP.
  const [, port] = /^[^/]*\/\/[^/]*:(\d+)(?:\/|$)/.exec(text) ?? []
  return {
    kind: 'clickhouse',
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === undefined ? (isTls ? 8443 : 8123) : Number(port),
    database,
    user,
    password: password === '' ? undefined : password,
    passwordFile,
    isTls,
    caFile,
    owner: owner ?? defaultOwner,
  }
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
