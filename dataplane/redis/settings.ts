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

const FORM = 'give redis://HOST:PORT, rediss://HOST:PORT for TLS, and the password in passwordFile'
const PORT = 6379

/** Reads `config.redis` of the config file. Returns a text that names the field, its value and a fix if it is invalid. */
export function readRedisSettings({ url: text, passwordFile, caFile }: RedisConfig): RedisSettings | string {
  const url = URL.parse(text)
  // Not the text: it may hold a password.
  if (url === null || !/^rediss?:$/.test(url.protocol) || url.hostname === '' || url.hash !== '' || url.search !== '')
    return `config.redis.url is not the URL of Redis: ${FORM}`
  const [user, password, path] = [url.username, url.password, url.pathname.slice(1)].map(decode)
  if (user === undefined || password === undefined || path === undefined) return `config.redis.url has a malformed escape: ${FORM}`
  if (!/^\d{0,4}$/.test(path)) return `config.redis.url has the database ${JSON.stringify(path)}: give a number`
  for (const [name, file] of Object.entries({ passwordFile, caFile }))
    if (file !== undefined && !file.startsWith('/')) return `config.redis.${name} is ${JSON.stringify(file)}: give an absolute path`
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? PORT : Number(url.port),
    database: Number(path),
    user: user === '' ? undefined : user,
    password: password === '' ? undefined : password,
    passwordFile,
    isTls: url.protocol === 'rediss:',
    caFile,
  }
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
