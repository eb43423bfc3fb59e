import { X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { parseTimeout } from '#api/duration.ts'
import { findRelativePath } from '#api/server-url.ts'
import { isIP } from 'node:net'
import { totalmem } from 'node:os'
import { PEER_PORT } from '#api/names.ts'
import { countCpus, type CpuCount } from '../runtime/cpu.ts'
import { issuedSecrets } from '../runtime/issued-secrets.ts'
import type { LedgerConfig, PostgresConfig, ProcessConfig, RedisConfig, UpstreamsSpec } from '#gen/config/types.ts'
import type { PeerAddress } from '../backend/mcp/session/sharing.ts'
import { readLedgerSettings, type LedgerSettings } from '../store/ledger/settings.ts'
import { readPostgresSettings, type PostgresSettings } from '../store/postgres/settings.ts'
import { readRedisSettings, type RedisSettings } from '../store/redis/settings.ts'

/**
 * Settings of the process, except its addresses (admin/listen.ts). The environment overrides the file's `config` section, which
 * overrides the defaults (operator.md §2.4).
 */
export interface ProcessSettings {
  readonly xdsAddress: string | undefined
  /** PEM file with the trust anchors for the config stream; undefined: those of the system. */
  readonly xdsRootCa: string | undefined
  /** Undefined if the file does not exist, as in standalone mode. */
  readonly xdsTokenFile: string | undefined
  readonly namespace: string
  readonly gateway: string
  readonly podName: string
  readonly podIp: string
  /** Where this replica takes messages of others; undefined: nowhere. */
  readonly peer: PeerAddress | undefined
  readonly nodeName: string
  /** Kubernetes sets a variable in every pod. */
  readonly isInPod: boolean
  /** Destinations that are permitted although they are refused by default. */
  readonly upstreams: UpstreamsSpec
  readonly logLevel: string
  readonly logFormat: 'json' | 'text'
  /** Headers that hold credentials, besides those that are known. */
  readonly sensitiveHeaders: readonly string[]
  /** Milliseconds after SIGTERM during which new requests are accepted. */
  readonly minDrainMs: number
  /** Milliseconds after SIGTERM until open connections are cut. */
  readonly maxDrainMs: number
  /** Threads that handle traffic. 1: the main thread. */
  readonly workers: number
  /** Undefined: no ledger. */
  readonly ledger: LedgerSettings | undefined
  /** SQLite file of the counters of budgets; undefined: they are lost when the process ends. */
  readonly budgetsFile: string | undefined
  /** File of the states of rollouts. */
  readonly rolloutsFile: string | undefined
  /** Undefined: caches store in memory. */
  readonly redis: RedisSettings | undefined
  /** Undefined: budgets with `store: Postgres` cannot be charged. */
  readonly postgres: PostgresSettings | undefined
}

/** An invalid setting. The message names the variable or field, its value and a fix. */
export class SettingError extends Error {}

const MAX_WORKERS = 64
/** Limit of `auto` for a container without a CPU limit, which may run on a machine with many cores. */
const MAX_UNLIMITED = 8
/** Memory for each worker of `auto`: about 20 MiB of it are for the thread, the others for its requests. */
const WORKER_BYTES = 96 * 1024 * 1024

type Environment = Readonly<Record<string, string | undefined>>

export function readSettings(env: Environment, file: ProcessConfig = {}): ProcessSettings {
  const text = (name: string, fallback: string): string => (env[name] === undefined || env[name] === '' ? fallback : env[name])
  const namespace = text('NAMESPACE', file.namespace ?? 'default')
  const gateway = text('GATEWAY', file.gateway ?? 'proxy')
  return {
    xdsAddress: text('XDS_ADDRESS', file.xdsAddress ?? '') || undefined,
    xdsRootCa: checkCertificates('XDS_ROOT_CA', text('XDS_ROOT_CA', '')),
    xdsTokenFile: pathIfExists(text('XDS_TOKEN_FILE', '/var/run/secrets/xds-tokens/xds-token')),
    namespace,
    gateway,
    podName: text('POD_NAME', 'proxy'),
    podIp: text('INSTANCE_IP', '127.0.0.1'),
    peer: readPeer(text('INSTANCE_IP', ''), text('PEER_PORT', '')),
    nodeName: text('NODE_NAME', ''),
    isInPod: env['KUBERNETES_SERVICE_HOST'] !== undefined,
    upstreams: file.upstreams ?? {},
    logLevel: text('PROXY_LOG', file.logging?.level ?? 'info'),
    logFormat: file.logging?.format ?? 'text',
    sensitiveHeaders: file.logging?.sensitiveHeaders ?? [],
    minDrainMs: readMs('CONNECTION_MIN_TERMINATION_DEADLINE', text('CONNECTION_MIN_TERMINATION_DEADLINE', file.connectionMinTerminationDeadline ?? '0s')),
    maxDrainMs: readGrace(env, file),
    workers: readWorkers(text('WORKERS', String(file.workers ?? 'auto'))),
    redis: file.redis && readRedis(file.redis),
    postgres: file.postgres && readPostgres(file.postgres),
    ledger: file.ledger && readLedger(file.ledger, `${namespace}/${gateway}`),
    budgetsFile: file.budgets?.sqlite && readOwnFile('config.budgets.sqlite', file.budgets.sqlite.path),
    rolloutsFile: file.rollouts?.path === undefined ? undefined : readOwnFile('config.rollouts', file.rollouts.path),
  }
}

/** The path, if it is set. The file is read again for each connection; one that is missing or unusable at the start is a mistake. */
function checkCertificates(name: string, path: string): string | undefined {
  if (path === '') return undefined
  try {
    new X509Certificate(readFileSync(path))
    return path
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'ENOENT' ? 'there is no such file' : code === 'EACCES' ? 'the file cannot be read' : 'the file holds no certificate in PEM form'
    throw new SettingError(`${name} is "${path}": ${why}; name a file of PEM certificates, or unset it to use those of the system`)
  }
}

const pathIfExists = (path: string): string | undefined => (existsSync(path) ? path : undefined)

/** Other replicas need an address that is set, as in pods: the default is loopback. */
function readPeer(host: string, rawPort: string): PeerAddress | undefined {
  const port = rawPort === '' ? PEER_PORT : Number(rawPort)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new SettingError(`PEER_PORT is "${rawPort}": give a port from 1 to 65535, or 0 for none`)
  if (host === '' || port === 0 || (rawPort === '' && isIP(host) === 0)) return undefined
  if (isIP(host) === 0) throw new SettingError(`INSTANCE_IP is "${host}": give an IP address, which other replicas use with PEER_PORT`)
  return { host, port }
}

/** Somewhat less than the pod's grace period, so that the process ends before it is killed (operator.md §2.4). */
function readGrace(env: Environment, file: ProcessConfig): number {
  const raw = env['TERMINATION_GRACE_PERIOD_SECONDS']
  if (raw === undefined || raw === '') return readMs('config.connectionTerminationDeadline', file.connectionTerminationDeadline ?? '60s')
  const seconds = Number(raw)
  if (!Number.isInteger(seconds) || seconds < 0) throw new SettingError(`TERMINATION_GRACE_PERIOD_SECONDS is "${raw}": give whole seconds, such as 60`)
  return Math.max(1, seconds > 10 ? seconds - 5 : seconds - 1) * 1000
}

function readRedis(section: RedisConfig): RedisSettings {
  const settings = checked(readRedisSettings(section))
  if (settings.caFile !== undefined) checkCertificates('config.redis.caFile', settings.caFile)
  return settings
}

function readPostgres(section: PostgresConfig): PostgresSettings {
  const settings = checked(readPostgresSettings('config.postgres', section))
  if (settings.caFile !== undefined) checkCertificates('config.postgres.caFile', settings.caFile)
  return settings
}

const readLedger = (section: LedgerConfig, owner: string): LedgerSettings => checked(readLedgerSettings(section, owner))

function checked<T>(settings: T | string): T {
  if (typeof settings === 'string') throw new SettingError(settings)
  return settings
}

function readOwnFile(field: string, path: string): string {
  const problem = findRelativePath(field, { path })
  if (problem !== undefined) throw new SettingError(problem)
  return path
}

function readWorkers(raw: string): number {
  if (raw === 'auto') return chooseWorkers()
  const workers = Number(raw)
  if (!/^\d+$/.test(raw) || workers < 1 || workers > MAX_WORKERS)
    throw new SettingError(`WORKERS is "${raw}": give a number from 1 to ${MAX_WORKERS}, or auto for the CPU limit`)
  return workers
}

/**
 * Workers of `auto`: the CPU limit, or the cores of the machine, at most 8; fewer with little memory.
 * @param constrained memory limit of the cgroup in bytes; 0: none
 */
export function chooseWorkers(
  { cpus, isLimited }: CpuCount = countCpus(),
  constrained: number = process.constrainedMemory(),
  total: number = totalmem(),
): number {
  const memory = constrained > 0 ? Math.min(constrained, total) : total
  return Math.max(1, Math.min(isLimited ? MAX_WORKERS : MAX_UNLIMITED, cpus, Math.floor(memory / WORKER_BYTES)))
}

function readMs(name: string, raw: string): number {
  const ms = parseTimeout(raw)
  if (ms === undefined) throw new SettingError(`${name} is "${raw}": give a duration such as 10s or 1m30s`)
  return ms
}

const MIN_TOKEN_CHARS = 16

/**
 * The token that ADMIN_TOKEN sets; undefined: none is needed. The variable is removed from the environment of the process: placeholders
 * of config files, and programs that inherit the environment, do not have it. No log shows it.
 */
export function takeAdminToken(env: Environment): string | undefined {
  const token = env['ADMIN_TOKEN']?.trim()
  delete process.env['ADMIN_TOKEN']
  // The value is secret, and not a part of the message.
  if (token !== undefined && (token.length < MIN_TOKEN_CHARS || !/^[!-~]+$/.test(token)))
    throw new SettingError(
      `ADMIN_TOKEN is not ${MIN_TOKEN_CHARS} or more visible ASCII characters: make one with openssl rand -hex 32, or unset it to require no token`,
    )
  if (token !== undefined) issuedSecrets.add(token)
  return token
}
