import { randomBytes } from 'node:crypto'
import { readApiKeyEntry } from '#api/credentials/api-key.ts'
import { KEY_BYTES, newKey } from '#api/credentials/new-key.ts'
import { parseDuration } from '#api/duration.ts'
import { ApiError, type KubeConnection } from '../../kube/connection.ts'
import { explainUnreachable, kubeconfigOf } from './admin.ts'
import { alignColumns, CommandError, UsageError } from '../output.ts'
import type { Command, Invocation } from '../types.ts'

const DAY_MS = 86_400_000

interface SecretObject {
  readonly data?: Readonly<Record<string, string>>
}

/** The Secret that holds the keys. */
interface Place {
  readonly namespace: string
  readonly name: string
}

/** A line of `keys list`. */
interface ListedKey {
  readonly name: string
  readonly state: 'valid' | 'expired' | 'invalid'
  readonly stored?: 'digest' | 'key'
  readonly expires?: string
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly problem?: string
}

/** Creates a key: prints it once, with the manifest of a Secret that has its digest, or writes the Secret. */
export const runKeysCreate: Command = async (invocation) => {
  const { options, output } = invocation
  const [place, entry] = [placeOf(invocation), entryOf(invocation, 'create')]
  const metadata = Object.fromEntries((options.metadata ?? []).map(parsePair))
  const expires = options.expires === undefined ? undefined : parseExpiry(options.expires, Date.now())
  const { key, keyHash } = newKey(randomBytes(KEY_BYTES))
  const value = JSON.stringify({ keyHash, ...(expires !== undefined && { expires }), ...(options.metadata !== undefined && { metadata }) })
  const manifest = { apiVersion: 'v1', kind: 'Secret', metadata: place, stringData: { [entry]: value } }
  if (options.write !== true) {
    const { stringify } = await import('yaml')
    output.note(`key of ${entry}, shown only now: ${key}\n`)
    output.print(manifest, () => stringify(manifest, { lineWidth: 0, version: '1.1' }).trimEnd().split('\n'))
    return 0
  }
  await withConnection(invocation, async (connection) => {
    const secret = await readSecret(connection, place)
    if (secret?.data?.[entry] !== undefined)
      throw new CommandError('PX6012', `Secret ${place.namespace}/${place.name} has a key ${entry} already; revoke it first or use another name`)
    if (secret === undefined) return connection.request('POST', `/api/v1/namespaces/${place.namespace}/secrets`, { body: manifest })
    const body = { data: { [entry]: Buffer.from(value).toString('base64') } }
    return connection.request('PATCH', pathOf(place), { body, contentType: 'application/merge-patch+json' })
  })
  output.print({ name: entry, secret: place, key }, () => [key])
  return 0
}

/** Lists the keys of a Secret; never the keys themselves. Returns 1 if one is not usable. */
export const runKeysList: Command = async (invocation) => {
  const { args, output } = invocation
  if (args.length > 0) throw new UsageError('keys list takes no argument; --secret NS/NAME names the Secret')
  const place = placeOf(invocation)
  const secret = await withConnection(invocation, (connection) => readSecret(connection, place))
  if (secret === undefined) throw new CommandError('PX6008', `Secret ${place.namespace}/${place.name} does not exist`)
  const now = Date.now()
  const keys = Object.entries(secret.data ?? {}).map(([name, encoded]): ListedKey => {
    const entry = readApiKeyEntry(Buffer.from(encoded, 'base64').toString())
    if ('problem' in entry) return { name, state: 'invalid', problem: entry.problem }
    const { expiresMs, metadata } = entry
    return {
      name,
      state: expiresMs !== undefined && expiresMs <= now ? 'expired' : 'valid',
      stored: entry.key === undefined ? 'digest' : 'key',
      ...(expiresMs !== undefined && { expires: new Date(expiresMs).toISOString() }),
      metadata,
    }
  })
  output.print({ keys }, () =>
    keys.length === 0
      ? ['no keys']
      : alignColumns([
          ['NAME', 'STATE', 'STORED', 'EXPIRES', 'METADATA'],
          ...keys.map((key) => [key.name, key.state, key.stored ?? '-', key.expires ?? '-', key.problem ?? JSON.stringify(key.metadata)]),
        ]),
  )
  return keys.some(({ state }) => state === 'invalid') ? 1 : 0
}

/** Removes a key from a Secret; data planes reject it within a second. */
export const runKeysRevoke: Command = async (invocation) => {
  const [place, entry] = [placeOf(invocation), entryOf(invocation, 'revoke')]
  if (invocation.options.write !== true) {
    const patch = JSON.stringify({ data: { [entry]: null } })
    const command = `kubectl patch secret ${place.name} -n ${place.namespace} --type=merge -p '${patch}'`
    invocation.output.print({ command }, () => [command])
    return 0
  }
  await withConnection(invocation, async (connection) => {
    const secret = await readSecret(connection, place)
    const names = Object.keys(secret?.data ?? {})
    if (!names.includes(entry))
      throw new CommandError(
        'PX6008',
        `Secret ${place.namespace}/${place.name} has no key ${entry}${names.length > 0 ? `; its keys are ${names.join(', ')}` : ''}`,
      )
    return connection.request('PATCH', pathOf(place), { body: { data: { [entry]: null } }, contentType: 'application/merge-patch+json' })
  })
  invocation.output.print({ revoked: entry }, () => [`revoked ${entry}`])
  return 0
}

const pathOf = ({ namespace, name }: Place): string => `/api/v1/namespaces/${namespace}/secrets/${name}`

function placeOf({ options: { secret = '', namespace = 'default' } }: Invocation): Place {
  const [first = '', second, ...rest] = secret.split('/')
  const place = second === undefined ? { namespace, name: first } : { namespace: first, name: second }
  const isName = (text: string): boolean => /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(text)
  if (rest.length > 0 || !isName(place.namespace) || !isName(place.name)) throw new UsageError('--secret names the Secret of the keys: NAMESPACE/NAME')
  return place
}

function entryOf({ args }: Invocation, command: string): string {
  const [name = '', ...rest] = args
  if (rest.length > 0 || !/^[-._a-zA-Z0-9]{1,253}$/.test(name)) throw new UsageError(`keys ${command} takes the name of one key: letters, digits, ., _ and -`)
  return name
}

/** `team=red`; a value that is JSON, such as a number or a list, is read as such. */
function parsePair(pair: string): [string, unknown] {
  const at = pair.indexOf('=')
  if (at < 1) throw new UsageError(`--metadata ${JSON.stringify(pair)} is not NAME=VALUE`)
  const text = pair.slice(at + 1)
  try {
    return [pair.slice(0, at), JSON.parse(text) as unknown]
  } catch {
    return [pair.slice(0, at), text]
  }
}

/** A time by RFC 3339, or the time after a duration such as `90d` or `12h`. */
function parseExpiry(text: string, nowMs: number): string {
  const days = /^([1-9]\d{0,4})d$/.exec(text)?.[1]
  const afterMs = days === undefined ? parseDuration(text) : Number(days) * DAY_MS
  const time = afterMs === undefined ? text : new Date(nowMs + afterMs).toISOString()
  if ('problem' in readApiKeyEntry(JSON.stringify({ key: 'k', expires: time })))
    throw new UsageError(`--expires ${JSON.stringify(text)} is neither a duration such as 90d or 12h, nor a time such as 2027-01-31T00:00:00Z`)
  if (Date.parse(time) <= nowMs) throw new UsageError(`--expires ${JSON.stringify(text)} is in the past; give a later time, or a duration such as 90d`)
  return time
}

async function withConnection<T>(invocation: Invocation, use: (connection: KubeConnection) => Promise<T>): Promise<T> {
  const { connect } = await import('../../kube/connection.ts')
  const connection = connect({ kubeconfig: kubeconfigOf(invocation), userAgent: 'proxyctl' })
  try {
    return await use(connection)
  } catch (error) {
    throw error instanceof CommandError ? error : explainUnreachable(error, kubeconfigOf(invocation))
  } finally {
    connection.close()
  }
}

async function readSecret(connection: KubeConnection, place: Place): Promise<SecretObject | undefined> {
  try {
    return await connection.request<SecretObject>('GET', pathOf(place))
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  }
}
