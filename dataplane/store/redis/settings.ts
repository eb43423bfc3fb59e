import { findRelativePath, readServerUrl } from '#api/server-url.ts'
import type { RedisConfig } from '#gen/config/types.ts'

/** How to reach Redis. Plain data, because threads receive it. */
export interface RedisSettings {
  readonly host: string
  readonly port: number
  readonly database: number
  readonly user: string | undefined
  readonly password: string | undefined
  /** Absolute path. Wins over `password`; read for each connection. */
  readonly passwordFile: string | undefined
  readonly isTls: boolean
  /** Absolute path of PEM certificates; undefined: those of Node. */
  readonly caFile: string | undefined
}

const FORM = {
  protocol: /^rediss?:$/,
  what: 'Redis',
  form: 'give redis://HOST:PORT, rediss://HOST:PORT for TLS, and the password in passwordFile',
}
const PORT = 6379

/** Reads `config.redis` of the config file. Returns a text that names the field, its value and a fix if it is invalid. */
export function readRedisSettings({ url: text, passwordFile, caFile }: RedisConfig): RedisSettings | string {
  const server = readServerUrl(text, FORM)
  if (typeof server === 'string') return `config.redis.url ${server}`
  const { url, host, user, password, path } = server
  if (!/^\d{0,4}$/.test(path)) return `config.redis.url has the database ${JSON.stringify(path)}: give a number`
  const problem = findRelativePath('config.redis', { passwordFile, caFile })
  if (problem !== undefined) return problem
  return {
    host,
    port: url.port === '' ? PORT : Number(url.port),
    database: Number(path),
    user: user === '' ? undefined : user,
    password,
    passwordFile,
    isTls: url.protocol === 'rediss:',
    caFile,
  }
}
