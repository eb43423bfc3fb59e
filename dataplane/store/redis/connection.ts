import { readFileSync } from 'node:fs'
import { createClient, ErrorReply, RESP_TYPES } from '@redis/client'
import { Causes } from '../../runtime/causes.ts'
import { messageOf, readPasswordFile, tlsNameOf } from '../../runtime/server-client.ts'
import type { Script, ScriptOutcome, ScriptStore, ValueStore } from '../../runtime/value-store.ts'
import type { Logger } from '../../observe/telemetry/log.ts'
import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import { redisMetrics } from './metrics.ts'
import type { RedisSettings } from './settings.ts'

const CONNECT_MS = 2000
/** Time of a command; a request waits at most so long for a value. */
const COMMAND_MS = 250
/** Pause after a command that took too long: other requests do not wait for a server that hangs. */
const PAUSE_MS = 1000
const MIN_RETRY_MS = 100
const MAX_RETRY_MS = 5000
/** Commands that wait for the server; further ones fail. */
const MAX_QUEUE = 1000
const PING_MS = 10_000
/** Time that a start waits for the first connection. */
const OPEN_MS = 1000
/** Time for commands that are sent when the connection is closed. */
const CLOSE_MS = 1000

type Command = 'get' | 'set' | 'remove' | 'evaluate'

/** A client of Redis with values as bytes. */
function openClient({ host, port, database, user, password, passwordFile, isTls, caFile }: RedisSettings) {
  const socket = {
    host,
    port,
    connectTimeout: CONNECT_MS,
    reconnectStrategy: (retries: number): number => Math.min(MIN_RETRY_MS * 2 ** Math.min(retries, 10), MAX_RETRY_MS),
  }
  return createClient({
    socket: isTls ? { ...socket, tls: true, ...tlsNameOf(host), ...(caFile !== undefined && { ca: readFileSync(caFile, 'utf8') }) } : socket,
    database,
    RESP: 2,
    disableOfflineQueue: true,
    commandsQueueMaxLength: MAX_QUEUE,
    pingInterval: PING_MS,
    disableClientInfo: true,
    maintNotifications: 'disabled',
    ...((passwordFile ?? password ?? user) !== undefined && {
      credentialsProvider: {
        type: 'async-credentials-provider' as const,
        credentials: async () => ({
          username: user ?? 'default',
          password: passwordFile === undefined ? (password ?? '') : await readPasswordFile(passwordFile),
        }),
      },
    }),
  }).withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })
}

/** What a connection of a thread needs. */
export interface RedisOptions {
  readonly settings: RedisSettings
  readonly log: Logger
  readonly registry: Registry
}

/** Connects in the background, and again after a connection was lost. Throws if the certificates cannot be read. */
export const connectRedis = (options: RedisOptions): RedisConnection => new RedisConnection(options)

/** The connection of one thread to Redis. Failures are counted, each cause is logged once until it works again, and none is thrown. */
export class RedisConnection implements ValueStore, ScriptStore {
  /** Resolves when the first connection is open or has failed, or after a second. */
  readonly opened: Promise<void>
  readonly #client: ReturnType<typeof openClient>
  readonly #count: (command: Command, isOk: boolean) => void
  #pausedUntilMs = 0
  readonly #causes = new Causes()

  constructor({ settings, log, registry }: RedisOptions) {
    const { commands } = redisMetrics(registry)
    this.#count = (command, isOk) => void commands.series(command, isOk ? 'ok' : 'failed').value++
    const client = openClient(settings)
    this.#client = client
    const server = `${settings.host}:${settings.port}`
    client.on('error', (error: unknown) => {
      const cause = messageOf(error)
      if (this.#causes.isNew(cause)) log.warn('Redis cannot be used', { code: 'PX4036', server, error: cause })
    })
    client.on('ready', () => {
      if (this.#causes.clear()) log.info('Redis can be used again', { server })
    })
    const { promise, resolve } = Promise.withResolvers<void>()
    this.opened = promise
    for (const event of ['ready', 'error']) client.once(event, resolve)
    setTimeout(resolve, OPEN_MS).unref()
    // Rejects only if it is closed before the first connection.
    client.connect().catch(() => undefined)
  }

  async get(key: string, maxBytes: number): Promise<Buffer | undefined | null> {
    // A value of another program may have any size.
    const value = await this.#run('get', () => this.#client.getRange(key, 0, maxBytes))
    if (value === undefined) return null
    return value === null || value.length === 0 || value.length > maxBytes ? undefined : value
  }

  set(key: string, value: Buffer, ttlMs: number): void {
    void this.#run('set', () => this.#client.set(key, value, { expiration: { type: 'PX', value: Math.max(1, Math.ceil(ttlMs)) } }))
  }

  remove(key: string): void {
    void this.#run('remove', () => this.#client.unlink(key))
  }

  evaluate({ source, sha }: Script, keys: readonly string[], args: readonly string[]): Promise<ScriptOutcome> {
    const options = { keys: [...keys], arguments: [...args] }
    return this.#attempt('evaluate', async () => {
      try {
        return await this.#client.evalSha(sha, options)
      } catch (error) {
        // The server was restarted since it received the script, or has never received it.
        if (!messageOf(error).startsWith('NOSCRIPT')) throw error
        return this.#client.eval(source, options)
      }
    })
  }

  /** Sends what waits, for a second at most. */
  async close(): Promise<void> {
    if (this.#client.isReady) {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSE_MS)))
      await Promise.race([this.#client.close().catch(() => undefined), late])
      clearTimeout(timer)
    }
    if (this.#client.isOpen) this.#client.destroy()
  }

  async #run<T>(command: Command, start: () => Promise<T>): Promise<T | undefined> {
    const outcome = await this.#attempt(command, start)
    return 'value' in outcome ? outcome.value : undefined
  }

  async #attempt<T>(command: Command, start: () => Promise<T>): Promise<ScriptOutcome<T>> {
    if (!this.#client.isReady || performance.now() < this.#pausedUntilMs) {
      this.#count(command, false)
      return { error: this.#client.isReady ? TOO_LATE : 'there is no connection to Redis', mayRun: false }
    }
    let timer: NodeJS.Timeout | undefined
    try {
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => {
          this.#pausedUntilMs = performance.now() + PAUSE_MS
          reject(new Error(TOO_LATE))
        }, COMMAND_MS)
      })
      const value = await Promise.race([start(), late])
      this.#count(command, true)
      return { value }
    } catch (error) {
      this.#count(command, false)
      return { error: messageOf(error), mayRun: !(error instanceof ErrorReply) }
    } finally {
      clearTimeout(timer)
    }
  }
}

const TOO_LATE = 'Redis did not respond in time'
