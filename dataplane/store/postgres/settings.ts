import { findRelativePath, readDatabaseUrl } from '#api/server-url.ts'
import type { PostgresConfig } from '#gen/config/types.ts'

/** How to reach a PostgreSQL database. Plain data, because threads receive it. */
export interface PostgresSettings {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  /** Password in the URL. */
  readonly password: string | undefined
  /** Absolute path. Wins over `password`; read for each connection. */
  readonly passwordFile: string | undefined
  readonly isTls: boolean
  /** Absolute path of PEM certificates; undefined: those of Node. */
  readonly caFile: string | undefined
}

const FORM = {
  protocol: /^postgres(ql)?:$/,
  what: 'a database',
  form: 'give postgres://USER@HOST:PORT/DATABASE, and the password in passwordFile',
  hasQuery: true,
}
const PORT = 5432
const MODES: Readonly<Record<string, boolean>> = { disable: false, 'verify-full': true }

/**
 * Reads a database of the config file. Returns a text that names the field, its value and a fix if it is invalid.
 * @param field its name in the file, such as `config.postgres`
 */
export function readPostgresSettings(field: string, { url: text, passwordFile, caFile }: PostgresConfig): PostgresSettings | string {
  const server = readDatabaseUrl(text, FORM)
  if (typeof server === 'string') return `${field}.url ${server}`
  const { url, host, user, password, path: database } = server
  const unknown = [...url.searchParams.keys()].find((name) => name !== 'sslmode')
  if (unknown !== undefined) return `${field}.url has the parameter ${JSON.stringify(unknown)}: only sslmode is supported`
  const mode = url.searchParams.get('sslmode') ?? 'verify-full'
  const isTls = MODES[mode]
  if (isTls === undefined) return `${field}.url has sslmode=${JSON.stringify(mode)}: use disable or verify-full`
  const problem = findRelativePath(field, { passwordFile, caFile })
  return problem ?? { host, port: url.port === '' ? PORT : Number(url.port), database, user, password, passwordFile, isTls, caFile }
}
